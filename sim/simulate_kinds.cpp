// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate_kinds.h"

#include <memory>
#include <utility>
#include <vector>

#include "sim/alike_costs.h"
#include "sim/awaited_ops.h"
#include "sim/found_out.h"
#include "sim/known_kinds.h"
#include "sim/lane_kinds.h"
#include "sim/least_time.h"
#include "sim/one_of_alike.h"
#include "sim/op_flows.h"
#include "sim/op_shapes.h"
#include "sim/steady_state.h"

namespace espalier {

namespace {

/// What it costs to find kinds, an op of the whole program, as SimLimits counts work.
constexpr std::int64_t kWorkToTell = kWorkPerOp / 2;
/// The same to find out how much there is to do.
constexpr std::int64_t kWorkToLook = kWorkPerOp / 10;

/// Many lanes of hardly any ops are simulated as fast as they are told apart.
bool are_short_lanes(const Simulation& of) {
  constexpr std::size_t kOpsOfLane = 4;
  constexpr std::size_t kManyLanes = 4096;
  std::size_t lanes = 0;
  for (PlaceId place = 0; place < of.program.places(); ++place) {
    lanes += of.graph.moving_lanes(place);
  }
  return lanes > kManyLanes && of.program.ops.size() < kOpsOfLane * lanes;
}

/// Whether it is known before it begins that it ends too late: then nobody needs to know who is
/// alike.
bool is_too_slow(const Simulation& of, OpShapes& shapes) {
  if (!of.is_limited()) return false;
  const auto& numbers = shapes.numbers();
  return LeastTime(of.program, of.blocks, numbers, shapes, of.limit_s()).is_too_slow();
}

/// Nothing where few lanes are alike.
KnownKinds find_kinds(const Simulation& of, OpShapes& shapes, const AlikeCosts& costs,
                      const MachineResources& machine, KindsKey key, bool is_kept) {
  const AwaitedOps awaited(of.program, of.names.rounds(), shapes, is_kept);
  KnownKinds found{key, awaited.outlasting(), std::nullopt, std::nullopt, std::nullopt};
  const LaneKinds::Ops ops{of.program, awaited, of.sent(), of.blocks, shapes, costs};
  const LaneKinds kinds(ops, machine);
  if (!kinds.are_few()) return found;
  found.one.emplace(ops, kinds);
  found.spans.emplace(of.program, of.blocks, shapes.numbers(), found.one->number);
  return found;
}

}  // namespace

bool may_be_of_kinds(const Simulation& of, const std::vector<double>& starts_s) {
  const RunOptions& options = of.options;
  // Parts of a stream are told by the op before them in the text.
  return options.only_times && !options.timeline && starts_s.empty() && !of.names.all_groups() &&
         options.engine != SimEngine::simgrid && !of.blocks.streams() && !are_short_lanes(of);
}

namespace {

SimulatedKinds too_slow_at_once(const Simulation& of) {
  SimulatedKinds none{{},
                      static_cast<std::int64_t>(of.program.ops.size()) * kWorkToLook,
                      AlikeLanes::not_looked_for};
  none.outcome.end = SimEnd::too_slow;
  return none;
}

/// One lane of each kind, and the flows of what its ops cost.
struct OneOfEach {
  const KnownKinds& kinds;  ///< with one of each
  const ShapeNumbers numbers{kinds.one->shapes, kinds.one->examples};
  std::vector<OpShapes::Shape> of_examples = {};
  std::int64_t transfers = 0;  ///< of the whole
};

/// As simulate_kinds. `found_by`: who has found the flows on the machine, which is the engine's.
std::optional<SimulatedKinds> simulate(const Simulation& of, const OneOfEach& each,
                                       MachineFlows& found_by, MachineResources& machine,
                                       ClassEngine& engine) {
  const OneOfAlike& one = *each.kinds.one;
  const Program& program = one.program;
  const OpNames names = OpNames::without_rounds(program);
  const OpGraph& graph = *each.kinds.graph;
  const std::vector<OpShapes::Shape> lists = one.flows_of_all(each.of_examples);
  KnownFlows flows(each.numbers, lists, found_by);
  Dispatcher dispatcher(program, names, graph, one.sent, of.blocks, of.profile(), of.message_bytes,
                        flows, of.unit, engine);
  dispatcher.await(one.landings);
  std::optional<LeastTime> least;
  if (of.is_limited()) {
    least.emplace(program, of.blocks, each.numbers, flows, of.limit_s());
    if (least->is_too_slow()) return too_slow_at_once(of);
    least->take(graph);
    dispatcher.give_up_by(*least);
  }
  machine.count_anew();
  dispatcher.start();
  run(engine, dispatcher, program.ops.size());
  if (engine.end() == SimEnd::finished && dispatcher.unfinished() > 0) return std::nullopt;
  const auto to_tell = static_cast<std::int64_t>(of.program.ops.size()) * kWorkToTell;
  SimulatedKinds done{{}, engine.work() + to_tell};
  done.outcome.end = engine.end();
  if (engine.end() != SimEnd::finished) return done;
  done.outcome.history = dispatcher.take_history();
  done.outcome.history.transfers = each.transfers;
  if (!count_in_rounds(of, &one.number, found_by, flows, done.outcome.history)) {
    done.outcome.end = SimEnd::unsteady;
    return done;
  }
  take_times(of, done.outcome, machine, {}, [&](double overhead_s) {
    return each.kinds.spans->period_s(done.outcome.history, done.outcome.longest_busy.any_s,
                                      overhead_s);
  });
  return done;
}

/// Whether what does not depend on the size of the message is kept. Machines of which the program
/// uses little would take much memory.
bool may_know_machine(const Simulation& of) {
  constexpr std::size_t kLinksAnOp = 4;
  return of.message_bytes > 0 && of.options.more_rounds == 0 &&
         of.target.router->topology().links.size() <= kLinksAnOp * of.program.ops.size();
}

/// Where an earlier simulation on this machine has found all that does not depend on the size of
/// the message. False: not, or ops await others than there.
bool simulate_again(const Simulation& of, KindsOnMachine& known,
                    std::optional<SimulatedKinds>& done) {
  ClassEngine engine(of.engine_limits());
  engine.begin({});
  MachineResources& machine = known.resources();
  machine.go_on_with(engine);
  MachineFlows flows = known.flows(of.message_bytes);
  const OneOfAlike& one = *known.kinds().one;
  OneOfEach each{known.kinds()};
  for (const OpId id : one.examples) OpShapes::fill(flows, id, each.of_examples.emplace_back());
  KnownFlows of_examples(each.numbers, each.of_examples, flows);
  if (!known.holds_for(each.of_examples, each.numbers, of_examples)) return false;
  each.transfers = known.transfers();
  done = simulate(of, each, flows, machine, engine);
  return true;
}

}  // namespace

std::optional<SimulatedKinds> simulate_kinds(const Simulation& of) {
  KindsOfProgram own;
  FoundOut* const found = found_out(of.program, of.options);
  KindsOfProgram* const kept = found != nullptr ? &found->kinds : nullptr;
  KindsOfProgram& known = kept != nullptr ? *kept : own;
  const bool keeps_machine = kept != nullptr && may_know_machine(of);
  std::optional<SimulatedKinds> done;
  KindsOnMachine* const on_machine = keeps_machine ? kept->on_machine_of(of) : nullptr;
  if (on_machine != nullptr && simulate_again(of, *on_machine, done)) return done;
  ClassEngine engine(of.engine_limits());
  engine.begin({});
  auto machine = std::make_unique<KindsOnMachine::Machine>(of, engine);
  MachineResources& resources = machine->resources;
  MachineFlows of_ops(of.program, of.blocks, of.profile(), of.message_bytes, resources,
                      of.text.get());
  OpShapes shapes(of_ops, of.text->shapes(of_ops));
  if (is_too_slow(of, shapes)) return too_slow_at_once(of);
  if (!LaneKinds::are_orderly(of.program, of.blocks, shapes, of.profile())) return std::nullopt;
  std::optional<CostInputs> inputs;
  if (of.message_bytes > 0) {
    inputs = CostInputs::find(of.program, of.target, of.blocks, shapes, resources);
  }
  const AlikeCosts costs = inputs ? inputs->by_shape() : costs_alike(shapes);
  const KindsKey key = kept != nullptr ? kinds_key(of, shapes, costs, resources) : KindsKey{};
  std::shared_ptr<const KnownKinds> kinds = known.find(key, shapes);
  if (!kinds) kinds = known.add(find_kinds(of, shapes, costs, resources, key, kept != nullptr));
  if (!kinds->one) return std::nullopt;
  const OneOfAlike& one = *kinds->one;
  OneOfEach each{*kinds};
  each.of_examples = one.flows_of_examples(shapes);
  each.transfers = one.transfers(shapes);
  done = simulate(of, each, of_ops, resources, engine);
  if (keeps_machine && inputs) {
    kept->keep(std::make_shared<KindsOnMachine>(std::move(machine), kinds, *inputs,
                                                shapes.numbers(), std::move(each.of_examples),
                                                each.transfers));
  }
  return done;
}

}  // namespace espalier
