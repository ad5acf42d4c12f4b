// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate_kinds.h"

#include <any>
#include <utility>

#include "sim/awaited_ops.h"
#include "sim/back_to_back.h"
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
KnownKinds find_kinds(const Simulation& of, OpShapes& shapes, const MachineResources& machine,
                      KindsKey key, bool is_kept) {
  const AwaitedOps awaited(of.program, of.names.rounds(), shapes, is_kept);
  KnownKinds found{key, awaited.outlasting(), std::nullopt, {}};
  const LaneKinds::Ops ops{of.program, awaited, of.sent(), of.blocks, shapes};
  const LaneKinds kinds(ops, machine);
  if (!kinds.are_few()) return found;
  found.one.emplace(ops, kinds);
  found.spanning = first_and_last_ops(of.program, shapes.numbers());
  return found;
}

/// What simulations of the program keep; null where nobody lets them, or it would be much.
KindsOfProgram* kept_kinds(const Simulation& of) {
  constexpr std::size_t kMaxOps = std::size_t{1} << 16;
  std::any* const found = of.options.found.get();
  if (found == nullptr || of.program.ops.size() > kMaxOps) return nullptr;
  if (!found->has_value()) found->emplace<KindsOfProgram>();
  return std::any_cast<KindsOfProgram>(found);
}

}  // namespace

bool may_be_of_kinds(const Simulation& of, const std::vector<double>& starts_s) {
  const RunOptions& options = of.options;
  // Parts of a stream are told by the op before them in the text.
  return options.only_times && !options.timeline && starts_s.empty() && !of.names.all_groups() &&
         options.engine != SimEngine::simgrid && !of.blocks.streams() && !are_short_lanes(of);
}

std::optional<SimulatedKinds> simulate_kinds(const Simulation& of) {
  ClassEngine engine(of.engine_limits());
  engine.begin({});
  MachineResources machine(of.program, of.target, of.unit, engine, of.message_bytes);
  MachineFlows of_ops(of.program, of.blocks, of.profile(), of.message_bytes, machine);
  OpShapes shapes(of.program, of_ops);
  if (is_too_slow(of, shapes)) {
    SimulatedKinds none{{},
                        static_cast<std::int64_t>(of.program.ops.size()) * kWorkToLook,
                        AlikeLanes::not_looked_for};
    none.outcome.end = SimEnd::too_slow;
    return none;
  }
  if (!LaneKinds::are_orderly(of.program, of.blocks, shapes, of.profile())) return std::nullopt;
  KindsOfProgram own;
  KindsOfProgram* const kept = kept_kinds(of);
  KindsOfProgram& known = kept != nullptr ? *kept : own;
  const KindsKey key = kept != nullptr ? kinds_key(of, shapes, machine) : KindsKey{};
  const KnownKinds* found = known.find(key, shapes);
  if (found == nullptr) found = &known.add(find_kinds(of, shapes, machine, key, kept != nullptr));
  if (!found->one) return std::nullopt;

  const OneOfAlike& one = *found->one;
  const Program& program = one.program;
  const OpNames names = OpNames::without_rounds(program);
  const OpGraph graph(program, one.awaits_result);
  const ShapeNumbers numbers(one.shapes, one.examples);
  const std::vector<OpShapes::Shape> lists = one.flows(shapes);
  KnownFlows flows(numbers, lists, of_ops);
  Dispatcher dispatcher(program, names, graph, one.sent, of.blocks, of.profile(), of.message_bytes,
                        flows, of.unit, engine);
  dispatcher.await(one.landings);
  std::optional<LeastTime> least;
  if (of.is_limited()) {
    least.emplace(program, of.blocks, numbers, flows, of.limit_s());
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
  done.outcome.history.transfers = one.transfers(shapes);
  if (!count_in_rounds(of, &one.number, of_ops, flows, done.outcome.history)) {
    done.outcome.end = SimEnd::unsteady;
    return done;
  }
  take_times(of, done.outcome, machine, {}, [&](double overhead_s) {
    return back_to_back_s(of.program, of.blocks, found->spanning, one.number, done.outcome.history,
                          done.outcome.links, overhead_s);
  });
  return done;
}

}  // namespace espalier
