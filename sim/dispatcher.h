// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "run/backend.h"
#include "sim/awaited_ops.h"
#include "sim/back_to_back.h"
#include "sim/block_map.h"
#include "sim/fifo_credits.h"
#include "sim/first_group.h"
#include "sim/flow_engine.h"
#include "sim/landings.h"
#include "sim/least_time.h"
#include "sim/moved_operands.h"
#include "sim/op_flows.h"
#include "sim/op_graph.h"
#include "sim/op_history.h"
#include "sim/op_names.h"
#include "sim/shared_blocks.h"

namespace espalier {

/// Runs a program's ops on the flow engine. An op has two times: how long it holds its lane, and
/// when its result can be used. It starts when the op before it on its lane no longer holds it and
/// the results it depends on can be used by its place. What an op of k operands of B bytes costs:
///
/// - Start-up: the largest among the op's routes, which holds the lane; where the protocol passes
///   ops on in slices, as often as there are slices (Protocol::slice_bytes). An op without
///   transfers pays the profile's local start-up instead.
/// - Blocks: what an op moves passes the blocks of its lane (BlockMap), at their rate. Lanes that
///   share a block run one op at a time (SharedBlocks).
/// - FIFOs, where the profile has them: see FifoCredits.
/// - A message at a NIC: that takes messages one after the other, those it sends and those it
///   receives each by themselves, while their bytes move.
/// - Every transfer (see for_each_transfer) is then a flow of B bytes over its route, all at once:
///   a result that goes elsewhere is passed on as operands come.
/// - Latency of a route: what is put elsewhere can be used there that much after the lane is free
///   (LogP's L: it delays the message and nobody's next one). A get waits for its bytes, so that
///   the latency holds its lane, unless the profile says that bytes are sent by whoever has them
///   (`gets_wait`).
/// - An op in a switch: a flow of the operands' way to the switch and on to `at`, and one of the
///   way from there to the switch and on to all destinations; what a slice costs as often as there
///   are slices (SwitchOps), in place of the above. The switch adds.
/// - Memory, where the profile models it: each operand is read once where it lies and the result
///   written once. What is read and written at `at` goes with the first flow.
/// - What kernels of `at` can read and write, where that is known: all operands and the result,
///   unless a copy engine makes the copy.
/// - Reduction: k operands are k - 1 additions, B bytes each of the reduction rate of `at`.
///   `fused`: additions happen as operands come, one with every flow of an operand but what the
///   local ones need with the first. `separate`: operands are written to memory on arrival; when
///   all are there, a reduction starts, which costs its own start-up, the additions, k reads and a
///   write, over the route of the result when that goes elsewhere. Reductions of one place at the
///   same time share its rate. `reading`: as `fused`, where the start-up is that of a kernel that
///   reduces; copies as under `separate`. `free`: nothing.
///
/// An op that costs nothing takes no time, for example a local copy under the ideal profile.
/// Telling others that a result is there costs nothing beyond its way there: start-up costs contain
/// it. Copy engines are not counted: lanes determine how many copies of a place run at once.
///
/// Programs leave out dependencies that others imply. So an op also waits for all that is under way
/// to what it reads or overwrites: in a program without races that is what ran before it.
class Dispatcher {
 public:
  /// Refers to its arguments. `sent`: of the program, where the profile has FIFOs.
  /// `message_bytes`: the whole message, which `units` divide. `unit`:
  /// what the engine's ticks are. `flows`: of the ops, over resources of the engine. \pre of all
  /// groups are only simulated ops that take no steps of FIFOs and share no blocks
  Dispatcher(const Program& program, const OpNames& names, const OpGraph& graph,
             const SentData& sent, const BlockMap& blocks, const Profile& profile,
             double message_bytes, OpFlows& flows, const TimeUnit& unit, FlowEngine& engine);

  /// The engine gives up once the simulation is known to become too slow. Refers to its argument.
  void give_up_by(LeastTime& least) { least_ = &least; }
  /// Which results an op may have to await when it begins is known; where they lie is not. Refers
  /// to its argument.
  void await(const LandingsOf& landings) {
    known_landings_ = &landings;
    seen_.resize(names_.size());
  }
  /// Tells of every op that ends: of all groups the history has the latest ends only. Refers to its
  /// argument.
  void tell(CallSpans& spans) { spans_ = &spans; }
  /// Starts every op that waits for nothing.
  /// `starts_s`: RunOptions::starts_s.
  void start(const std::vector<double>& starts_s = {});
  /// A flow of `op` has ended.
  void on_flow_done(OpId op);
  /// Of the flows that end now, none is left.
  void on_instant_over();

  std::size_t unfinished() const { return names_.size() - finished_; }
  /// \pre the engine is dry.
  OpHistory take_history();

 private:
  void run_ready();
  void make_ready(OpId id);
  void begin(OpId id);
  bool reduces_separately(OpId id) const {
    return !reducing_.empty() && flows_.reduces_separately(id);
  }
  bool hold_on(OpId id);
  bool takes_steps(OpId id);
  void reduce(OpId id);
  void start(OpId id, const FlowList& list);
  void start_flow(OpId id, double latency_s, double bytes, std::span<const ResourceId> resources,
                  ResourceId alone, FlowKind& kind);
  OpRecord& record(OpId id) { return history_.ops[id]; }
  OpEnd& end_of(OpId id, const OpNames::Alike& alike) {
    return history_.ends[names_.all_groups() ? names_.lane(alike) : id];
  }
  /// What an op is like, units and groups aside.
  const Op& op_like(OpId id) const { return program_.ops[names_.alike(id).op]; }
  /// Calls `visit(FromGroup)`; of all groups, as they are.
  template <class Visit>
  void for_each_source(const OpNames::Alike& alike, Visit&& visit) const {
    if (!moved_) return first_group_.for_each_source(alike.op, alike.units_on, visit);
    moved_->for_each_source(alike.op, alike.group, [&](const Operand& operand) {
      visit(FromGroup{0, operand});
    });
  }
  template <class Visit>
  void for_each_destination(const OpNames::Alike& alike, Visit&& visit) const {
    if (!moved_) return first_group_.for_each_destination(alike.op, alike.units_on, visit);
    moved_->for_each_destination(alike.op, alike.group, [&](const Operand& operand) {
      visit(FromGroup{0, operand});
    });
  }
  /// What an op that has not begun waits for is there. \pre it has not begun
  Ticks ready(OpId id) const { return {history_.ops[id].start_s}; }
  void set_ready(OpId id, Ticks date) { record(id).start_s = date.value; }
  /// \pre it has begun
  bool is_moving(OpId id) const { return history_.ops[id].awaited > 0; }
  void end_hold(OpId id);
  void note_end(OpId id, const OpNames::Alike& alike, Ticks now, Ticks seen);
  void release_others(OpId id, const OpNames::Alike& alike, Ticks now, Ticks seen);
  void release_of_groups(OpId id, const OpNames::Alike& alike, Ticks now, Ticks seen);
  void note_cause(OpId id, OpId cause, int group, bool by_landing = false);
  void await_landings(OpId id);
  void release(OpId id, OpId cause, int group, Ticks date);

  const Program& program_;
  /// Ops of all rounds are looked up in the first: millions of ops lie far apart in memory.
  const OpNames& names_;
  const OpGraph& graph_;
  const FirstGroup first_group_;
  std::optional<MovedOperands> moved_;  ///< of all groups, in place of these
  const BlockMap& blocks_;
  const Profile& profile_;
  OpFlows& flows_;
  LeastTime* least_ = nullptr;  ///< null: there is no limit
  CallSpans* spans_ = nullptr;  ///< null: the history has all ends
  const TimeUnit unit_;
  FlowEngine& engine_;

  Landings landings_;
  const LandingsOf* known_landings_ = nullptr;  ///< in place of these
  std::vector<Ticks> seen_;                     ///< then, by op that has ended: of its result
  std::vector<bool> reducing_;                  ///< by op, when the profile reduces separately
  std::vector<OpId> ready_;  ///< to be begun; a list, because free ops form long chains
  SharedBlocks shared_;
  std::optional<FifoCredits> fifos_;
  std::size_t finished_ = 0;
  OpHistory history_;

  Ticks wait_;  ///< until the op starts that is being begun
};

}  // namespace espalier
