// SPDX-License-Identifier: Apache-2.0
#include "sim/run_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/block_interpreter.h"
#include "sim/class_engine.h"
#include "sim/load_simgrid.h"

namespace espalier {
namespace {

/// Loops that are simulated at first, and at most where they never settle: from a quarter of them
/// on two quarters are compared.
constexpr std::int64_t kFirstLoops = 64;
constexpr std::int64_t kMaxLoops = 2048;
/// Loops have settled when they last as long as those before, to this part.
constexpr double kSettled = 1e-3;

/// What a tick is made of: any rate will do, but results then do not depend on the machine's own.
constexpr double kUnitGbps = 1;

struct Run {
  std::vector<double> ends_s;  ///< of loops; none where blocks are stuck
  std::vector<Diagnostic> stuck;
  double time_s = 0;  ///< of the whole message, without what the call costs
  MachineResources::LongestBusy longest_busy;  ///< with the whole message
  std::vector<LinkUse> links;                  ///< likewise, where they are to be listed
  std::int64_t transfers = 0;                  ///< likewise
};

Expectation expectation_for(const LoopPlan& plan, std::int64_t loops) {
  return {.largest_bytes = plan.loop_bytes * static_cast<double>(plan.piece_chunks),
          .time = {},
          .flows_in_turn = static_cast<double>(loops)};
}

/// The duration of a whole message of which `ends_s` are the first loops.
double whole_s(const std::vector<double>& ends_s, const LoopPlan& plan) {
  const auto loops = static_cast<std::int64_t>(ends_s.size());
  if (loops >= plan.loops) return ends_s.back();
  const std::size_t quarter = ends_s.size() / 4;
  const double loop_s = (ends_s[3 * quarter] - ends_s[quarter]) / static_cast<double>(2 * quarter);
  const double left = plan.chunk_bytes / plan.loop_bytes - static_cast<double>(loops);
  return ends_s.back() + loop_s * left;
}

bool have_settled(const std::vector<double>& ends_s) {
  const std::size_t quarter = ends_s.size() / 4;
  const double earlier_s = ends_s[2 * quarter] - ends_s[quarter];
  const double later_s = ends_s[3 * quarter] - ends_s[2 * quarter];
  return std::abs(later_s - earlier_s) <= kSettled * later_s;
}

/// What the call costs before blocks begin.
double call_s(const Target& target, const RunOptions& options) {
  return options.is_call ? target.router->profile().call_overhead_s : 0;
}

/// The first `loops` loops. Nothing when the engine has to begin again, with what is then expected.
std::optional<Run> run_loops(const Program& program, const BlockProgram& blocks,
                             const Target& target, const RunOptions& options, const LoopPlan& plan,
                             std::int64_t loops, FlowEngine& engine, Expectation& expected) {
  const TimeUnit unit(kUnitGbps);
  engine.begin(expected);
  MachineResources machine(program, target, unit, engine, static_cast<double>(options.size_bytes));
  BlockInterpreter interpreter(blocks, target, plan, loops, machine, unit, engine);
  interpreter.start();
  if (const auto better = engine.run([&](FlowToken id) { interpreter.on_flow_done(id); })) {
    expected = *better;
    return std::nullopt;
  }
  Run run;
  if (!interpreter.is_done()) {
    run.stuck = interpreter.explain_stuck();
    return run;
  }
  run.ends_s = interpreter.loop_ends_s();
  run.time_s = whole_s(run.ends_s, plan);
  run.longest_busy = machine.longest_busy();
  if (options.details) run.links = machine.report(call_s(target, options) + run.time_s);
  run.transfers = static_cast<std::int64_t>(
      std::llround(static_cast<double>(interpreter.transfers()) * plan.repeated(loops)));
  return run;
}

Run run_until_settled(const Program& program, const BlockProgram& blocks, const Target& target,
                      const RunOptions& options, FlowEngine& engine) {
  const LoopPlan plan(blocks, target.router->profile().protocol,
                      static_cast<double>(options.size_bytes));
  for (std::int64_t loops = kFirstLoops;; loops *= 2) {
    const std::int64_t simulated = std::min(loops, plan.loops);
    Expectation expected = expectation_for(plan, simulated);
    std::optional<Run> run;
    while (!run) {
      run = run_loops(program, blocks, target, options, plan, simulated, engine, expected);
    }
    const bool is_all = simulated == plan.loops || loops >= kMaxLoops;
    if (is_all || !run->stuck.empty() || have_settled(run->ends_s)) return std::move(*run);
  }
}

}  // namespace

RunReport simulate_blocks(const Program& program, const BlockProgram& blocks, const Target& target,
                          const RunOptions& options) {
  if (options.timeline) {
    throw Error(ErrorKind::unsupported,
                fmt::format("there is no timeline of {} under profile {}: it knows steps of thread "
                            "blocks, and not when each op of the program runs",
                            program.name, target.router->profile().name),
                "--profile kernel has one");
  }
  const auto wall_start = std::chrono::steady_clock::now();
  ClassEngine classes;
  const bool by_simgrid = options.engine == SimEngine::simgrid && !options.limits;
  FlowEngine& engine = by_simgrid ? simgrid_engine() : classes;
  Run run = run_until_settled(program, blocks, target, options, engine);
  RunReport report;
  SimulatedPart& simulated = report.simulated.emplace();
  if (!run.stuck.empty()) {
    if (!options.limits) throw Error(ErrorKind::runtime, std::move(run.stuck));
    simulated.end = SimEnd::stuck;
    simulated.stuck = run.stuck[0].message + "; " + run.stuck[1].message;
    return report;
  }
  simulated.engine = std::string(engine.name());
  simulated.work = by_simgrid ? 0 : classes.work();
  simulated.busiest_s = run.longest_busy.any_s;
  simulated.busiest_link_s = run.longest_busy.link_s;
  simulated.links = std::move(run.links);
  for (const std::vector<BlockProgram::Block>& gpu : blocks.gpus) {
    simulated.blocks = std::max(simulated.blocks, static_cast<int>(gpu.size()));
  }
  report.time_s = call_s(target, options) + run.time_s;
  // Every thread block takes part from beginning to end.
  simulated.back_to_back_s = simulated.together_s = report.time_s;
  if (options.limits && report.time_s > options.limits->time_s) simulated.end = SimEnd::too_slow;
  report.message_bytes = options.size_bytes;
  report.transfers = run.transfers;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - wall_start;
  report.wall_s = wall.count();
  return report;
}

}  // namespace espalier
