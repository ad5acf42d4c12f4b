// SPDX-License-Identifier: Apache-2.0
#include "sim/dispatcher.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace espalier {
namespace {

/// Durations are doubles: what lasted exactly so long must not look a little too short.
constexpr double kTolerance = 1e-6;

}  // namespace

Dispatcher::Dispatcher(const Program& program, const OpGraph& graph, const BlockMap& blocks,
                       const Profile& profile, double message_bytes, OpFlows& flows,
                       const TimeUnit& unit, FlowEngine& engine)
    : program_(program),
      graph_(graph),
      rounds_(find_rounds(program).value_or(Rounds{})),
      first_group_(program, rounds_),
      blocks_(blocks),
      profile_(profile),
      flows_(flows),
      unit_(unit),
      engine_(engine),
      landings_(program.places()),
      reducing_(profile.reduction == ReductionMode::separate ? program.ops.size() : 0),
      shared_(program, blocks) {
  if (profile.fifo_steps > 0) {
    fifos_.emplace(program, rounds_, profile,
                   message_bytes / static_cast<double>(program.contract.units));
  }
  history_.ops.resize(program.ops.size());
  for (OpId id = 0; id < program.ops.size(); ++id) record(id).awaited = graph.waits(id);
  if (program.fold.is_folded()) history_.cause_group.resize(program.ops.size(), 0);
}

OpHistory Dispatcher::take_history() {
  for (OpId id = 0; fifos_ && id < program_.ops.size(); ++id) {
    if (fifos_->lacks_steps(id)) history_.without_steps.push_back(id);
  }
  return std::move(history_);
}

void Dispatcher::start(const std::vector<double>& starts_s) {
  const auto start_s = [&](PlaceId place) {
    const auto index = static_cast<std::size_t>(place);
    return index < starts_s.size() ? starts_s[index] : 0;
  };
  for (OpId id = 0; !starts_s.empty() && id < program_.ops.size(); ++id) {
    const Op& op = program_.ops[id];
    double begins_s = start_s(op.at);
    // What another place's call has not been launched for may still be computed there.
    for (const Operand& source : program_.sources_of(op)) {
      begins_s = std::max(begins_s, start_s(source.place));
    }
    if (begins_s > 0) set_ready(id, unit_.from_s(begins_s));
  }
  for (OpId id = 0; id < program_.ops.size(); ++id) {
    if (graph_.waits(id) == 0) make_ready(id);
  }
  on_instant_over();
}

void Dispatcher::on_flow_done(OpId id) {
  CHECK(is_moving(id));
  if (--record(id).awaited > 0) return;
  if (reduces_separately(id) && !reducing_[id]) {
    wait_ = {};
    reduce(id);
  } else if (!hold_on(id)) {
    end_hold(id);
  }
  run_ready();
}

/// Begins it, or lets it wait for the block that its lane shares.
void Dispatcher::make_ready(OpId id) {
  if (shared_.has(id)) {
    shared_.wait(id, ready(id));
  } else {
    ready_.push_back(id);
  }
}

void Dispatcher::on_instant_over() {
  run_ready();
  while (const auto next = shared_.take()) {
    if (next->waited_for) {
      set_ready(next->op, std::max(ready(next->op), engine_.now()));
      note_cause(next->op, *next->waited_for, 0);
    }
    ready_.push_back(next->op);
    run_ready();
  }
}

void Dispatcher::run_ready() {
  // Ops made ready on the way are appended and reached by this loop.
  for (std::size_t i = 0; i < ready_.size(); ++i) begin(ready_[i]);
  ready_.clear();
}

void Dispatcher::begin(OpId id) {
  if (fifos_ && !takes_steps(id)) return;
  await_landings(id);
  wait_ = TimeUnit::between(engine_.now(), ready(id));
  const double start_s = unit_.to_s(engine_.now() + wait_);
  record(id).start_s = start_s;
  if (least_ != nullptr && least_->is_too_slow(id, unit_.to_s(engine_.now()), start_s)) {
    engine_.give_up();
  }
  if (blocks_.shares()) history_.order.push_back(id);
  const FlowList& list = flows_.begin(id);
  history_.transfers += list.transfers;
  record(id).seen_s = list.landing_s;
  start(id, list);
  if (is_moving(id)) return;
  if (reduces_separately(id)) {
    reduce(id);
  } else {
    end_hold(id);
  }
}

/// The second half of an op whose operands have come.
void Dispatcher::reduce(OpId id) {
  reducing_[id] = true;
  const FlowList& list = flows_.reduce(id);
  record(id).seen_s = list.landing_s;
  start(id, list);
  if (!is_moving(id)) end_hold(id);
}

bool Dispatcher::takes_steps(OpId id) {
  const Op& op = op_like(id);
  // It lies in the step of the first part, which the receiver has until it has taken that out.
  if (blocks_.streams() && is_further_part(program_, program_.ops[id])) return true;
  return fifos_->take(id, blocks_.lane_on_block(op.at, op.lane), blocks_.width(op.at, op.lane));
}

/// Keeps an op over links that has ended too early for the protocol.
bool Dispatcher::hold_on(OpId id) {
  const double min_s = profile_.protocol.min_op_s;
  const Op& op = op_like(id);
  if (min_s <= 0 || op.in_switch) return false;
  bool is_over_links = false;
  for_each_transfer(program_, op, [&](PlaceId, PlaceId) { is_over_links = true; });
  const double lasted_s = unit_.to_s(engine_.now()) - record(id).start_s;
  const double left_s = min_s - lasted_s - record(id).seen_s;
  if (!is_over_links || left_s <= kTolerance * min_s) return false;
  wait_ = {};
  FlowKind unknown = kUnknownKind;
  start_flow(id, left_s, 0, {}, kNoResource, unknown);
  return true;
}

/// All at once.
void Dispatcher::start(OpId id, const FlowList& list) {
  for (const FlowList::Flow& flow : list.flows) {
    start_flow(id, flow.latency_s, flow.bytes, list.resources_of(flow), flow.alone, flow.kind);
  }
}

/// `alone`: what no other flow uses meanwhile.
void Dispatcher::start_flow(OpId id, double latency_s, double bytes,
                            std::span<const ResourceId> resources, ResourceId alone,
                            FlowKind& kind) {
  const Ticks latency = wait_ + unit_.from_s(std::max(latency_s, 0.0));
  const bool moves = bytes > 0 && (!resources.empty() || alone != kNoResource);
  if (latency.value <= 0 && !moves) return;
  ++record(id).awaited;
  engine_.start(resources, alone, latency, bytes, id, kind);
}

/// The lane is free; the result may still be under way.
void Dispatcher::end_hold(OpId id) {
  const auto [like, ops_on, units_on] = rounds_.alike(id);
  const Op& op = program_.ops[like];
  const Ticks now = engine_.now();
  Ticks seen = now;
  if (const double landing_s = record(id).seen_s; landing_s > 0) {
    seen = now + unit_.from_s(landing_s);
    first_group_.for_each_destination(like, units_on, [&](const FromGroup& dst) {
      landings_.add(id, seen, dst.operand, op.length, dst.group, now);
    });
  }
  record(id).end_s = unit_.to_s(now);
  record(id).seen_s = unit_.to_s(seen);
  ++finished_;
  shared_.free(id, now);
  if (fifos_) {
    for (const OpId freed : fifos_->end(id)) {
      set_ready(freed, std::max(ready(freed), now));
      note_cause(freed, id, group_of(program_.fold, program_.ops[freed].dst));
      ready_.push_back(freed);
    }
  }
  // Ops of a round are awaited in that round alone.
  for (const OpId successor : graph_.successors(like)) {
    const Op& next = program_.ops[successor];
    const int group = group_awaited(next, like);
    const bool is_one_place = next.at == op.at && group % program_.fold.rank_groups() == 0;
    release(successor + ops_on, id, group, is_one_place ? now : seen);
  }
  // What comes next in the first round does so in all rounds but the last.
  const bool is_before_last = id + rounds_.ops < rounds_.end();
  const OpId next = graph_.next_in_lane(is_before_last ? like : id);
  if (next != OpGraph::kNone) release(is_before_last ? next + ops_on : next, id, 0, now);
}

/// How many groups further on the op is that it waits for, in a folded program; of several ops, one
/// of another group.
int Dispatcher::group_awaited(const Op& op, OpId earlier) const {
  if (!program_.fold.is_folded()) return 0;
  int group = 0;
  for (std::uint32_t i = op.dep_begin; i < op.dep_begin + op.dep_count; ++i) {
    const int of = program_.fold.dependency_groups[i];
    if (program_.dependencies[i] == earlier && of != 0) group = of;
  }
  return group;
}

void Dispatcher::note_cause(OpId id, OpId cause, int group) {
  record(id).cause = cause;
  if (program_.fold.is_folded()) history_.cause_group[id] = group;
}

/// What an op reads or overwrites has to be there.
void Dispatcher::await_landings(OpId id) {
  const auto [like, ops_on, units_on] = rounds_.alike(id);
  const Op& op = program_.ops[like];
  if (op.kind != OpKind::combine) return;
  const auto await = [&](const FromGroup& one) {
    const auto* const last = landings_.last_of(one.operand, op.length, engine_.now());
    if (last == nullptr || last->until <= ready(id)) return;
    set_ready(id, last->until);
    note_cause(id, last->op, program_.fold.wrapped(one.group - last->group));
  };
  first_group_.for_each_source(like, units_on, await);
  first_group_.for_each_destination(like, units_on, await);
}

/// `date`: when what `id` waited for can be used; `group`: whose it is.
void Dispatcher::release(OpId id, OpId cause, int group, Ticks date) {
  CHECK(record(id).awaited > 0);
  if (record(id).cause == OpRecord::kNone || !(date < ready(id))) {
    set_ready(id, date);
    note_cause(id, cause, group);
  }
  if (--record(id).awaited == 0) make_ready(id);
}

}  // namespace espalier
