// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"
#include "run/options.h"
#include "run/report.h"
#include "run/target.h"
#include "sim/block_map.h"
#include "sim/class_engine.h"
#include "sim/dispatcher.h"
#include "sim/flow_engine.h"
#include "sim/machine_resources.h"
#include "sim/op_graph.h"
#include "sim/op_history.h"
#include "sim/op_names.h"
#include "sim/sent_data.h"
#include "sim/text_findings.h"
#include "sim/time_unit.h"

namespace espalier {

/// What one program's simulations have in common. Refers to its arguments.
struct Simulation {
  Simulation(const Program& of, const Target& on, const RunOptions& as);

  const Profile& profile() const { return target.router->profile(); }
  /// What the call costs before its ops begin.
  double call_overhead_s() const;
  /// Whether it ends at some date.
  bool is_limited() const;
  /// That date, without the call's overhead. \pre is_limited
  double limit_s() const { return options.limits->time_s - call_overhead_s(); }
  EngineLimits engine_limits() const;
  /// Where the profile has FIFOs; found when it is first asked for.
  const SentData& sent() const;

  const Program& program;
  const Target& target;
  const RunOptions& options;
  const std::shared_ptr<TextFindings> text;
  const OpNames names;
  const OpGraph& graph;
  const BlockMap blocks;
  const TimeUnit unit;
  const double message_bytes;  ///< of what the program moves: see RunOptions::more_rounds

 private:
  mutable std::optional<SentData> sent_;
};

/// 0 without links.
double slowest_link_gbps(const Router& router);
double call_overhead_s(const Program& program, const Target& target, const RunOptions& options);

/// What came of a simulation.
struct SimulationOutcome {
  OpHistory history;
  MachineResources::LongestBusy longest_busy;
  std::vector<LinkUse> links;  ///< where they are to be listed
  double time_s = 0;
  double back_to_back_s = 0;
  double together_s = 0;
  SimEnd end = SimEnd::finished;  ///< given up, there is nothing else
  std::string stuck;
};

/// Runs an engine until no flow is left, and says how far it is. As FlowEngine::run.
std::optional<Expectation> run(FlowEngine& engine, Dispatcher& dispatcher, std::size_t ops);

/// Fills in all that follows from the history of a simulation that has finished.
void take_times(const Simulation& of, SimulationOutcome& outcome, const MachineResources& machine,
                const std::vector<double>& starts_s,
                const std::function<double(double call_overhead_s)>& back_to_back);

}  // namespace espalier
