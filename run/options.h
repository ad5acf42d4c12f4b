// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/data.h"
#include "topologies/profile.h"

namespace espalier {

/// What solves contention in a simulation: SimGrid, the reference, or our own engine, which is
/// faster and the automatic choice (docs/decisions/0006-two-flow-engines.md). Both agree to 1e-9.
enum class SimEngine : std::uint8_t { automatic, simgrid, classes };

/// "auto", "simgrid", "classes".
std::string_view to_string(SimEngine engine);
const std::vector<SimEngine>& all_sim_engines();

/// When a simulation is abandoned: its result no longer matters, or it takes too
/// long. Work is counted, so that the simulation ends at the same point on every
/// computer; one unit is one look at the transfers of a link, some nanoseconds.
struct SimLimits {
  double time_s = std::numeric_limits<double>::infinity();  ///< simulated
  std::int64_t work = std::numeric_limits<std::int64_t>::max();
};

/// The minimum work of an op.
inline constexpr std::int64_t kWorkPerOp = 100;

/// How a program is run, by any back end.
struct RunOptions {
  std::int64_t size_bytes = 0;  ///< the message, as nccl-tests counts it
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  int iterations = 1;  ///< timed runs of an executing back end
  int warmup = 0;
  bool check = true;      ///< executing back ends compare every element of the results
  bool timeline = false;  ///< keep start and end of every op
  /// Simulated only: of lanes that behave alike, one may be simulated in place of all (AlikeLanes).
  /// Then of links that carry the same one is known, and no critical path.
  bool only_times = false;
  /// Simulated only: list what every link carries, and the critical path.
  bool details = true;
  /// Simulated only: the program is one call of a collective, which costs what
  /// the profile says. An iteration of training is not a call; its exchanges are.
  bool is_call = true;
  BlockUse blocks = {};                     ///< simulated only
  SimEngine engine = SimEngine::automatic;  ///< simulated only
  /// Simulated only: when each place begins with the call, in seconds; the first of them is 0.
  /// Before that nobody reads its memory, and what is written to it counts as received then.
  /// Empty: all at once, as are places beyond the last one.
  std::vector<double> starts_s = {};
  /// Simulated only: all at once, however calls are launched (launch_starts_s).
  bool start_together = false;
  /// Simulated only; with limits, our own engine simulates, whatever `engine` says.
  std::optional<SimLimits> limits = {};
  double timeout_s = 60;  ///< a run without progress for this long is reported as stuck
  /// Simulated only: what earlier runs of this program found out about it, on whatever machine, and
  /// what this one adds for the next; in the back end's own form. Never passed on to runs of
  /// another program. Null: nothing is kept.
  std::shared_ptr<std::any> found = nullptr;
  /// Simulated only: `size_bytes` has so many more rounds than the program, which stands for one
  /// that goes through them as through those it has (ir/rounds.h). Where these have come to repeat
  /// themselves, the others are counted in; where not, the simulation is SimEnd::unsteady.
  std::int64_t more_rounds = 0;
};

}  // namespace espalier
