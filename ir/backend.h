// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "ir/data.h"
#include "ir/program.h"
#include "topologies/route.h"

namespace espalier {

/// The machine a program runs on. `router` may be null for back ends that do not look at it (host).
struct Target {
  Router* router = nullptr;
  Placement placement;
};

/// The node that holds a place. \pre the placement has as many ranks, host memories and relays as
/// the program
NodeId node_of(const Program& program, const Placement& placement, PlaceId place);

/// Who divides links between the transfers of a simulation: SimGrid, the reference, or an engine of
/// our own for many at once (docs/decisions/0006-two-flow-engines.md). Both agree to 1e-9.
enum class SimEngine : std::uint8_t { automatic, simgrid, classes };

/// "auto", "simgrid", "classes".
std::string_view to_string(SimEngine engine);
const std::vector<SimEngine>& all_sim_engines();

/// When a simulation is given up: it takes no interest any more, or too long. Work is counted, so
/// that where it ends is the same on every computer: one is a look at the transfers of a link, some
/// nanoseconds.
struct SimLimits {
  double time_s = std::numeric_limits<double>::infinity();  ///< simulated
  std::int64_t work = std::numeric_limits<std::int64_t>::max();
};

/// What every op costs at least, in work.
inline constexpr std::int64_t kWorkPerOp = 100;

enum class SimEnd : std::uint8_t { finished, too_slow, too_costly };

struct RunOptions {
  std::int64_t size_bytes = 0;  ///< the message, as nccl-tests counts it
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  int iterations = 1;  ///< timed runs of an executing back end
  int warmup = 0;
  bool check = true;      ///< executing back ends compare every element of the results
  bool timeline = false;  ///< keep start and end of every op
  /// Simulated only: the program is one call of a collective, which costs what the profile says. An
  /// iteration of training is none: its exchanges are calls.
  bool is_call = true;
  SimEngine engine = SimEngine::automatic;  ///< simulated only
  /// Simulated only; with limits, our own engine simulates, whatever `engine` says.
  std::optional<SimLimits> limits = {};
  double timeout_s = 60;  ///< a run that makes no progress this long is reported as stuck
};

struct OpTiming {
  OpId op = 0;
  double start_s = 0;
  double end_s = 0;
};

struct LinkUse {
  std::string name;  ///< "gpu0->gpu3 nvlink2", or "a<->b" when both directions share it
  double bytes = 0;
  double busy_s = 0;       ///< bytes / capacity
  double utilization = 0;  ///< busy_s / time_s
  bool is_link = true;     ///< not memory or arithmetic of a node, which is counted the same way
};

/// One stretch of the chain of ops that decided the time.
struct CriticalStep {
  OpId op = 0;
  double start_s = 0;
  double end_s = 0;
  std::string what;        ///< "r1.out[0] <- r1.in[0] + r0.in[0]"
  std::string waited_for;  ///< "data of op 3", "lane 0 of r1", "start"
};

struct RunReport {
  double time_s = 0;  ///< of one run; the mean over iterations for executing back ends
  double min_time_s = 0;
  double max_time_s = 0;
  double median_time_s = 0;           ///< as above; the mean of two in the middle
  std::int64_t message_bytes = 0;     ///< after rounding to whole elements and blocks
  std::int64_t transfers = 0;         ///< between different places
  std::optional<std::int64_t> wrong;  ///< wrong elements (executing back ends that checked)
  std::vector<std::string> damage;    ///< of these, what was overwritten beside the results
  std::vector<std::string> notes;     ///< where and how it was executed, a line each
  std::string engine;                 ///< simulated only: the one that was used
  /// Simulated with limits only. What was given up has no figures but its work.
  SimEnd end = SimEnd::finished;
  std::int64_t work = 0;
  std::vector<LinkUse> links;               ///< simulated only
  std::vector<CriticalStep> critical_path;  ///< simulated only, in time order; perhaps its end only
  std::int64_t critical_steps = 0;          ///< of the whole path
  std::vector<OpTiming> timeline;           ///< when asked for
  double wall_s = 0;                        ///< what the back end itself took
  double algbw_gbps() const {
    return time_s > 0 ? static_cast<double>(message_bytes) / time_s * 1e-9 : 0;
  }
};

/// Something that runs verified programs: the simulator, host threads, GPUs. The only virtual
/// interface that rooms share.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  /// Why this program can't run there, or nothing.
  virtual std::optional<std::string> unsupported(const Program& program,
                                                 const Target& target) const = 0;
  /// Throws what `run` would throw for want of memory or of devices; nothing is run.
  virtual void require_room(const Program& program, const Target& target,
                            const RunOptions& options) {
    static_cast<void>(program), static_cast<void>(target), static_cast<void>(options);
  }
  /// \pre `program` passed `verify`, and `unsupported` answered nothing. Throws Error{runtime}
  /// naming rank and op when the run can't finish.
  virtual RunReport run(const Program& program, const Target& target,
                        const RunOptions& options) = 0;
};

/// Rule R10: every transfer has a route on this machine, and no GPU needs more peers than it may
/// map.
std::vector<Diagnostic> check_routes(const Program& program, const Target& target);

}  // namespace espalier
