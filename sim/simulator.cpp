// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/activity.h"
#include "core/check.h"
#include "core/words.h"
#include "ir/reorder.h"
#include "run/routes.h"
#include "sim/back_to_back.h"
#include "sim/block_map.h"
#include "sim/class_engine.h"
#include "sim/critical_path.h"
#include "sim/dispatcher.h"
#include "sim/least_time.h"
#include "sim/load_simgrid.h"
#include "sim/lockstep.h"
#include "sim/machine_resources.h"
#include "sim/op_flows.h"
#include "sim/op_graph.h"
#include "sim/op_names.h"
#include "sim/op_shapes.h"
#include "sim/run_blocks.h"
#include "sim/simulate_kinds.h"
#include "sim/simulated_flows.h"
#include "sim/simulation.h"
#include "sim/steady_state.h"
#include "sim/stuck.h"

namespace espalier {
namespace {

/// The largest flow of a message of `message_bytes`.
double largest_flow_bytes(const Program& program, double message_bytes) {
  std::uint32_t longest = 0;
  for (const Op& op : program.ops) longest = std::max(longest, op.length);
  return message_bytes * longest / static_cast<double>(program.contract.units);
}

/// The start-up and latency of an op whose route has two of the slowest links.
double largest_latency_s(const Router& router) {
  const Profile& profile = router.profile();
  double link_s = 0;
  double overhead_s = profile.local_overhead_s;
  for (const Link& link : router.topology().links) {
    link_s = std::max(link_s, link.latency_s);
    const auto known = profile.links.find(link.kind);
    if (known != profile.links.end())
      overhead_s = std::max(overhead_s, known->second.start_up().most_s());
  }
  for (const auto& [unused, hop_s] : profile.protocol.hop_s) {
    overhead_s = std::max(overhead_s, hop_s);
  }
  return overhead_s + profile.reduce_overhead_s + 2 * link_s;
}

/// Of GPUs and whatever else computes.
double slowest_speed(const Router& router) {
  return std::ranges::min(router.topology().nodes, {}, &Node::speed).speed;
}

/// The busiest lanes at the speed of the slowest link and node.
Expectation expectation(const Program& program, const OpGraph& graph, const Router& router,
                        double message_bytes, const TimeUnit& unit) {
  const double slowest_gbps = slowest_link_gbps(router);
  double seconds = graph.most_compute_in_lane_s() / slowest_speed(router) +
                   graph.most_ops_in_lane() * largest_latency_s(router);
  if (slowest_gbps > 0) {
    const double units = static_cast<double>(program.contract.units);
    seconds += message_bytes * graph.most_units_in_lane() / units / (slowest_gbps * 1e9);
  }
  const double flow_bytes = largest_flow_bytes(program, message_bytes);
  return {
      .largest_bytes = std::max(flow_bytes, MachineResources::most_proxy_bytes(router, flow_bytes)),
      .time = unit.from_s(seconds),
      .flows_in_turn = static_cast<double>(graph.most_ops_in_lane())};
}

/// The flows of all ops, found before a simulation and over resources of their own: those of the
/// simulation are numbered by the turns of ops.
struct ForeknownFlows {
  explicit ForeknownFlows(const Simulation& of)
      : machine(of.program, of.target, of.unit, unused, of.message_bytes),
        flows(of.program, of.blocks, of.profile(), of.message_bytes, machine, of.text.get()),
        shapes(flows, of.text->shapes(flows)) {}

  ClassEngine unused;  ///< nothing flows
  MachineResources machine;
  MachineFlows flows;
  OpShapes shapes;
};

/// Of an engine that has run. `spans`: where ops of all groups were simulated, else null.
SimulationOutcome outcome_of(const Simulation& of, Dispatcher& dispatcher,
                             const MachineResources& machine, MachineFlows& of_ops, OpFlows& flows,
                             const std::vector<double>& starts_s, SimEnd end,
                             const CallSpans* spans) {
  SimulationOutcome outcome;
  outcome.end = end;
  if (end != SimEnd::finished) return outcome;
  const std::size_t unfinished = dispatcher.unfinished();
  outcome.history = dispatcher.take_history();
  if (unfinished > 0) {
    CHECK(!of.names.all_groups());  // nothing but FIFOs and shared blocks holds up ops for ever
    std::vector<Diagnostic> reasons = explain_stuck(of.program, of.graph, outcome.history);
    if (!of.options.limits) throw Error(ErrorKind::runtime, std::move(reasons));
    outcome.end = SimEnd::stuck;
    outcome.stuck = reasons[0].message + "; " + reasons[1].message;
    return outcome;
  }
  if (!count_in_rounds(of, nullptr, of_ops, flows, outcome.history)) {
    outcome.end = SimEnd::unsteady;
    return outcome;
  }
  take_times(of, outcome, machine, starts_s, [&](double overhead_s) {
    const double busiest_s = outcome.longest_busy.any_s;
    return spans != nullptr
               ? spans->period_s(busiest_s, overhead_s)
               : back_to_back_s(of.program, of.blocks, outcome.history, busiest_s, overhead_s);
  });
  return outcome;
}

/// One run. Nothing when it has to be repeated, with what is then expected. `known`: where the time
/// is limited and not all groups are simulated, else null.
std::optional<SimulationOutcome> simulate(const Simulation& of, const std::vector<double>& starts_s,
                                          ForeknownFlows* known, FlowEngine& engine,
                                          Expectation& expected) {
  engine.begin(expected);
  MachineResources machine(of.program, of.target, of.unit, engine, of.message_bytes);
  MachineFlows of_ops(of.program, of.blocks, of.profile(), of.message_bytes, machine,
                      of.text.get());
  SimulatedFlows flows =
      of.names.all_groups()
          ? SimulatedFlows(of.program, of.names, of.blocks, of.profile(), of.message_bytes, machine,
                           of_ops)
          : SimulatedFlows(known ? known->shapes.shared_numbers() : of.text->shapes(of_ops),
                           of_ops);
  Dispatcher dispatcher(of.program, of.names, of.graph, of.sent(), of.blocks, of.profile(),
                        of.message_bytes, flows.get(), of.unit, engine);
  std::optional<LeastTime> least;
  if (known) {
    least.emplace(of.program, of.blocks, known->shapes.numbers(), known->shapes, of.limit_s());
    least->take(of.graph);
    dispatcher.give_up_by(*least);
  }
  std::optional<CallSpans> spans;
  if (of.names.all_groups()) {
    dispatcher.tell(spans.emplace(of.program, of.blocks, of.program.fold.groups));
  }
  dispatcher.start(starts_s);
  if (const auto better = run(engine, dispatcher, of.names.size())) {
    expected = *better;
    return std::nullopt;
  }
  return outcome_of(of, dispatcher, machine, of_ops, flows.get(), starts_s, engine.end(),
                    spans ? &*spans : nullptr);
}

/// SimGrid cannot abandon a simulation, and knows nothing of folds.
bool by_simgrid(const Program& program, const RunOptions& options) {
  const bool is_possible = !program.fold.is_folded() && !options.limits;
  return is_possible && options.engine == SimEngine::simgrid;
}

std::vector<OpTiming> timeline(const OpHistory& history) {
  std::vector<OpTiming> all(history.ops.size());
  for (OpId id = 0; id < all.size(); ++id) {
    const OpEnd& end = history.ends[id];
    all[id] = {id, history.ops[id].start_s, end.end_s, end.seen_s - end.end_s};
  }
  return all;
}

/// A program's simulation to its end, or to its limits.
struct Simulated {
  SimulationOutcome outcome;
  std::string engine;
  std::int64_t work = 0;
  AlikeLanes alike_lanes = AlikeLanes::not_looked_for;
};

Simulated simulate(const Simulation& of, const std::vector<double>& starts_s) {
  ClassEngine classes(of.engine_limits());
  const bool looks = may_be_of_kinds(of, starts_s);
  if (looks) {
    if (std::optional<SimulatedKinds> done = simulate_kinds(of)) {
      return {std::move(done->outcome), std::string(classes.name()), done->work, done->alike_lanes};
    }
  }
  FlowEngine& engine = by_simgrid(of.program, of.options) ? simgrid_engine() : classes;
  Expectation expected =
      expectation(of.program, of.graph, *of.target.router, of.message_bytes, of.unit);
  std::optional<Activity> slow;
  if (&engine != &classes) slow.emplace("simulating with SimGrid");
  std::optional<ForeknownFlows> known;
  if (of.is_limited() && !of.names.all_groups()) {
    known.emplace(of);
  }
  std::optional<SimulationOutcome> outcome;
  while (!outcome) {
    outcome = simulate(of, starts_s, known ? &*known : nullptr, engine, expected);
  }
  return {std::move(*outcome), std::string(engine.name()), classes.work(),
          looks ? AlikeLanes::few : AlikeLanes::not_looked_for};
}

RunReport run_simulation(const Program& program, const Target& target, const RunOptions& options) {
  const auto wall_start = std::chrono::steady_clock::now();
  const Simulation simulation(program, target, options);
  Simulated done = simulate(simulation, options.starts_s);
  if (!options.starts_s.empty()) {
    // Of calls that follow each other, nobody waits for the first one's launches.
    const SimulationOutcome at_once = simulate(simulation, {}).outcome;
    done.outcome.back_to_back_s = at_once.back_to_back_s;
    done.outcome.together_s = at_once.time_s;
    if (at_once.end == SimEnd::unsteady) done.outcome.end = at_once.end;
  }
  SimulationOutcome& outcome = done.outcome;

  RunReport report;
  SimulatedPart& simulated = report.simulated.emplace();
  simulated.work = done.work;
  simulated.end = outcome.end;
  simulated.stuck = std::move(outcome.stuck);
  simulated.alike_lanes = done.alike_lanes;
  if (simulated.end != SimEnd::finished) return report;
  simulated.engine = std::move(done.engine);
  simulated.back_to_back_s = outcome.back_to_back_s;
  simulated.together_s = outcome.together_s;
  simulated.blocks = simulation.blocks.most_in_use();
  simulated.busiest_s = outcome.longest_busy.any_s;
  simulated.busiest_link_s = outcome.longest_busy.link_s;
  simulated.links = std::move(outcome.links);
  report.time_s = outcome.time_s;
  report.message_bytes = options.size_bytes;
  const bool all_groups = simulation.names.all_groups();
  report.transfers = outcome.history.transfers * (all_groups ? 1 : program.fold.groups);
  if (options.details && !options.only_times) {
    report_critical_path(program, simulation.names, outcome.history, simulated);
  }
  simulated.repeated = std::move(outcome.history.repeated);
  if (options.timeline) report.timeline = timeline(outcome.history);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - wall_start;
  report.wall_s = wall.count();
  return report;
}

}  // namespace

Simulator::Simulator() = default;
Simulator::~Simulator() = default;

std::optional<std::string> Simulator::unsupported(const Program& program,
                                                  const Target& target) const {
  if (target.router == nullptr) return "the simulator needs a machine to simulate";
  CHECK(target.rotation == nullptr || program.fold.groups == target.rotation->groups());
  const std::vector<Diagnostic> problems = check_routes(program, target);
  if (problems.empty()) return std::nullopt;
  std::vector<std::string> lines;
  lines.reserve(problems.size());
  for (const Diagnostic& problem : problems) lines.push_back(problem.message);
  return join(lines, "\n");
}

/// What the ops of other groups do follows from the first group's as long as it does not depend on
/// where on the machine they are, apart from their routes.
bool Simulator::runs_all_groups(const Program& program, const Target& target,
                                const RunOptions& options) const {
  const Profile& profile = target.router->profile();
  const Topology& machine = target.router->topology();
  const bool has_memories =
      std::ranges::any_of(machine.nodes, [](const Node& node) { return !node.memory.empty(); });
  if (program.fold.shares_ranks() || options.timeline || profile.fifo_steps > 0 || has_memories) {
    return false;
  }
  const bool is_plain = std::ranges::all_of(program.ops, [&](const Op& op) {
    const bool is_in_step = profile.protocol.lockstep_bytes > 0 && reads_several_peers(program, op);
    return op.kind == OpKind::combine && !op.in_switch && op.via < 0 && !is_in_step;
  });
  return is_plain && !BlockMap(program, OpGraph(program), target, options.blocks).shares();
}

std::optional<Program> Simulator::on_blocks(const Program& program, const Target& target,
                                            const RunOptions& options) {
  CHECK(target.router != nullptr);
  return with_memory_to("put " + program.name + " on blocks", [&]() -> std::optional<Program> {
    RunOptions unlimited = options;
    unlimited.limits.reset();
    unlimited.only_times = false;  // the order of all ops is wanted
    unlimited.engine = SimEngine::classes;
    const Simulation simulation(program, target, unlimited);
    const BlockMap& blocks = simulation.blocks;
    if (!blocks.shares()) return std::nullopt;
    const Simulated done = simulate(simulation, unlimited.starts_s);
    std::vector<std::uint16_t> lanes;
    lanes.reserve(program.ops.size());
    for (const Op& op : program.ops) lanes.push_back(blocks.lane_on_block(op.at, op.lane));
    return reorder(program, done.outcome.history.order, lanes);
  });
}

LeastTimes Simulator::least_times(const Program& program, const Target& target,
                                  const RunOptions& options, double enough_s) {
  CHECK(target.router != nullptr);
  return with_memory_to("look at " + program.name, [&]() -> LeastTimes {
    const auto message_bytes = static_cast<double>(options.size_bytes);
    // What drifts takes as long by itself, and pieces of it pause as often as there are pieces.
    Profile profile = target.router->profile();
    profile.protocol.drift_ops = 0;
    const double call_s = call_overhead_s(program, target, options);
    ClassEngine unused;  // nothing flows
    MachineResources machine(program, target, TimeUnit(slowest_link_gbps(*target.router)), unused,
                             message_bytes);
    const double links_s = busiest_link_s(program, machine, message_bytes, enough_s - call_s);
    if (call_s + links_s > enough_s) {
      return {links_s, [=](std::int64_t) { return call_s + links_s; }};
    }
    const OpGraph graph(program);
    const BlockMap blocks(program, graph, target, options.blocks);
    MachineFlows flows(program, blocks, profile, message_bytes, machine);
    MachineFlows of_a_byte(program, blocks, profile, 1, machine);
    const LeastOfPieces least(program, flows, of_a_byte, blocks, machine, message_bytes,
                              enough_s - call_s);
    return {least.links_s(),
            [=](std::int64_t chunk_bytes) { return call_s + least.of_chunks_s(chunk_bytes); }};
  });
}

RunReport Simulator::run(const Program& program, const Target& target, const RunOptions& options) {
  CHECK(target.router != nullptr);
  CHECK(groups_run(program, target.rotation) == 1 || runs_all_groups(program, target, options));
  return with_memory_to("simulate " + program.name,
                        [&] { return run_simulation(program, target, options); });
}

RunReport Simulator::run_blocks(const Program& program, const BlockProgram& blocks,
                                const Target& target, const RunOptions& options) {
  CHECK(target.router != nullptr);
  return with_memory_to("simulate " + program.name,
                        [&] { return simulate_blocks(program, blocks, target, options); });
}

}  // namespace espalier
