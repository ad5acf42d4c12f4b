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

Dispatcher::Dispatcher(const Program& program, const OpNames& names, const OpGraph& graph,
                       const SentData& sent, const BlockMap& blocks, const Profile& profile,
                       double message_bytes, OpFlows& flows, const TimeUnit& unit,
                       FlowEngine& engine)
    : program_(program),
      names_(names),
      graph_(graph),
      first_group_(program, names.rounds()),
      blocks_(blocks),
      profile_(profile),
      flows_(flows),
      unit_(unit),
      engine_(engine),
      landings_(program.places()),
      reducing_(profile.reduction == ReductionMode::separate ? names.size() : 0),
      shared_(program, blocks) {
  const bool all_groups = names.all_groups();
  CHECK(!all_groups || (profile.fifo_steps == 0 && !blocks.shares()));
  if (all_groups) moved_.emplace(program);
  if (profile.fifo_steps > 0) {
    fifos_.emplace(program, names.rounds(), sent, profile,
                   message_bytes / static_cast<double>(program.contract.units));
  }
  history_.ops.resize(names.size());
  history_.ends.resize(all_groups ? names.lanes() : names.size());
  for (OpId id = 0; id < names.size(); ++id) {
    record(id).awaited = graph.waits(all_groups ? names.alike(id).op : id);
  }
  if (all_groups) {
    history_.by_landing.resize(names.size());
  } else if (program.fold.is_folded()) {
    history_.cause_group.resize(program.ops.size(), 0);
  }
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
  for (OpId id = 0; !starts_s.empty() && id < names_.size(); ++id) {
    // All groups begin alike (starts_fold), or all of them are simulated.
    const OpNames::Alike alike = names_.alike(id);
    const PlaceId at = program_.ops[alike.op].at;
    double begins_s = start_s(moved_ ? moved_->place(at, alike.group) : at);
    // What another place's call has not been launched for may still be computed there.
    for_each_source(alike, [&](const FromGroup& source) {
      begins_s = std::max(begins_s, start_s(source.operand.place));
    });
    if (begins_s > 0) set_ready(id, unit_.from_s(begins_s));
  }
  for (OpId id = 0; id < names_.size(); ++id) {
    if (record(id).awaited == 0) make_ready(id);
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
  end_of(id, names_.alike(id)).seen_s = list.landing_s;
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
  end_of(id, names_.alike(id)).seen_s = list.landing_s;
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
  if (min_s <= 0) return false;
  const OpNames::Alike alike = names_.alike(id);
  const Op& op = program_.ops[alike.op];
  if (op.in_switch) return false;
  bool is_over_links = false;
  for_each_transfer(program_, op, [&](PlaceId, PlaceId) { is_over_links = true; });
  const double lasted_s = unit_.to_s(engine_.now()) - record(id).start_s;
  const double left_s = min_s - lasted_s - end_of(id, alike).seen_s;
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
  const OpNames::Alike alike = names_.alike(id);
  const Op& op = program_.ops[alike.op];
  const Ticks now = engine_.now();
  Ticks seen = now;
  if (const double landing_s = end_of(id, alike).seen_s; landing_s > 0) {
    seen = now + unit_.from_s(landing_s);
    if (known_landings_ == nullptr) {
      for_each_destination(alike, [&](const FromGroup& dst) {
        landings_.add(id, seen, dst.operand, op.length, dst.group, now);
      });
    }
  }
  if (known_landings_ != nullptr) seen_[id] = seen;
  note_end(id, alike, now, seen);
  ++finished_;
  shared_.free(id, now);
  if (fifos_) {
    for (const OpId freed : fifos_->end(id)) {
      if (!(now < ready(freed))) {  // else what it reads lands later than that
        set_ready(freed, now);
        note_cause(freed, id, group_of(program_.fold, program_.ops[freed].dst));
      }
      ready_.push_back(freed);
    }
  }
  if (names_.all_groups()) {
    release_of_groups(id, alike, now, seen);
  } else {
    release_others(id, alike, now, seen);
  }
}

void Dispatcher::note_end(OpId id, const OpNames::Alike& alike, Ticks now, Ticks seen) {
  const double end_s = unit_.to_s(now);
  const double seen_s = unit_.to_s(seen);
  end_of(id, alike) = {end_s, seen_s};
  const bool is_last = history_.last == OpRecord::kNone || seen_s > history_.last_seen_s ||
                       (seen_s == history_.last_seen_s && id < history_.last);
  if (is_last) {
    history_.last = id;
    history_.last_seen_s = seen_s;
  }
  if (spans_ != nullptr) spans_->note(alike.op, alike.group, record(id).start_s, end_s, seen_s);
}

void Dispatcher::release_others(OpId id, const OpNames::Alike& alike, Ticks now, Ticks seen) {
  const OpId like = alike.op;
  // Ops of a round are awaited in that round alone.
  graph_.for_each_successor(like, [&](OpId successor, int group, bool awaits_result) {
    release(successor + alike.ops_on, id, group, awaits_result ? seen : now);
  });
  // What comes next in the first round does so in all rounds but the last.
  const Rounds& rounds = names_.rounds();
  const bool is_before_last = id + rounds.ops < rounds.end();
  const OpId next = graph_.next_in_lane(is_before_last ? like : id);
  if (next != OpGraph::kNone) release(is_before_last ? next + alike.ops_on : next, id, 0, now);
}

/// Who waits for an op of so many groups further on is of a group so many before that.
void Dispatcher::release_of_groups(OpId id, const OpNames::Alike& alike, Ticks now, Ticks seen) {
  graph_.for_each_successor(alike.op, [&](OpId successor, int group, bool awaits_result) {
    const int of =
        alike.group >= group ? alike.group - group : alike.group - group + program_.fold.groups;
    release(names_.of_group(successor, of), id, 0, awaits_result ? seen : now);
  });
  const OpId next = graph_.next_in_lane(alike.op);
  if (next != OpGraph::kNone) release(names_.of_group(next, alike.group), id, 0, now);
}

void Dispatcher::note_cause(OpId id, OpId cause, int group, bool by_landing) {
  record(id).cause = cause;
  if (!history_.cause_group.empty()) history_.cause_group[id] = group;
  if (!history_.by_landing.empty()) history_.by_landing[id] = by_landing;
}

/// What an op reads or overwrites has to be there.
void Dispatcher::await_landings(OpId id) {
  if (known_landings_ != nullptr) {
    for (const OpId other : known_landings_->of(id)) {
      const Ticks seen = seen_[other];
      if (seen <= engine_.now() || seen <= ready(id)) continue;
      set_ready(id, seen);
      note_cause(id, other, 0);
    }
    return;
  }
  const OpNames::Alike alike = names_.alike(id);
  const Op& op = program_.ops[alike.op];
  if (op.kind != OpKind::combine) return;
  const auto await = [&](const FromGroup& one) {
    const auto* const last = landings_.last_of(one.operand, op.length, engine_.now());
    if (last == nullptr || last->until <= ready(id)) return;
    set_ready(id, last->until);
    note_cause(id, last->op, program_.fold.wrapped(one.group - last->group), true);
  };
  for_each_source(alike, await);
  for_each_destination(alike, await);
}

/// `date`: when what `id` waited for can be used; `group`: whose it is.
void Dispatcher::release(OpId id, OpId cause, int group, Ticks date) {
  CHECK(record(id).awaited > 0);
  const bool is_last = !(date < ready(id));
  if (is_last) set_ready(id, date);  // where its place begins later, it does, too
  if (is_last || record(id).cause == OpRecord::kNone) note_cause(id, cause, group);
  if (--record(id).awaited == 0) make_ready(id);
}

}  // namespace espalier
