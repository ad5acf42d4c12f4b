// SPDX-License-Identifier: Apache-2.0
#include "sim/dispatcher.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"

namespace espalier {
namespace {

/// Durations are doubles: what lasted exactly so long must not look a little too short.
constexpr double kTolerance = 1e-6;
/// What is not limited by links.
constexpr double kAnyRate = std::numeric_limits<double>::infinity();

}  // namespace

Dispatcher::Dispatcher(const Program& program, const OpGraph& graph, const BlockMap& blocks,
                       const Profile& profile, double message_bytes, MachineResources& machine,
                       const TimeUnit& unit, FlowEngine& engine)
    : program_(program),
      graph_(graph),
      blocks_(blocks),
      profile_(profile),
      machine_(machine),
      costs_(program, blocks, profile, message_bytes, machine),
      unit_(unit),
      engine_(engine),
      landings_(program.places()),
      reducing_(profile.reduction == ReductionMode::separate ? program.ops.size() : 0),
      shared_(program, blocks) {
  if (profile.fifo_steps > 0) fifos_.emplace(program, profile, costs_.bytes_per_unit());
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
  for (OpId id = 0; !starts_s.empty() && id < program_.ops.size(); ++id) {
    const auto place = static_cast<std::size_t>(program_.ops[id].at);
    if (place < starts_s.size()) set_ready(id, unit_.from_s(starts_s[place]));
  }
  for (OpId id = 0; id < program_.ops.size(); ++id) {
    if (graph_.waits(id) == 0) make_ready(id);
  }
  on_instant_over();
}

void Dispatcher::on_flow_done(OpId id) {
  CHECK(is_moving(id));
  if (--record(id).awaited > 0) return;
  const Op& op = program_.ops[id];
  if (costs_.reduces_separately(op) && !reducing_[id]) {
    wait_ = {};
    begin_reduction(id, op);
  } else if (!hold_on(id)) {
    end_hold(id);
  }
  run_ready();
}

/// Begins it, or lets it wait for the block that its lane shares.
void Dispatcher::make_ready(OpId id) {
  if (shared_.has(program_.ops[id])) {
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
  const Op& op = program_.ops[id];
  if (op.kind == OpKind::combine) {
    begin_combine(id, op);
    return;
  }
  const double duration_s = program_.duration_s(op);
  resources_.clear();
  begin_flow(id, op.kind == OpKind::compute ? machine_.computing_s(op.at, duration_s) : duration_s,
             0);
  if (!is_moving(id)) end_hold(id);
}

void Dispatcher::begin_combine(OpId id, const Op& op) {
  if (op.in_switch) {
    begin_in_switch(id, op);
    if (!is_moving(id)) end_hold(id);
    return;
  }
  costs_.transfers_of(op, transfers_);
  history_.transfers += static_cast<std::int64_t>(transfers_.size());
  if (costs_.reduces_separately(op)) {
    begin_arrivals(id, op);
    if (!is_moving(id)) begin_reduction(id, op);
  } else {
    begin_streaming(id, op);
    if (!is_moving(id)) end_hold(id);
  }
}

bool Dispatcher::takes_steps(OpId id) {
  const Op& op = program_.ops[id];
  return fifos_->take(id, blocks_.lane_on_block(op.at, op.lane), blocks_.width(op.at, op.lane));
}

/// Keeps an op over links that has ended too early for the protocol.
bool Dispatcher::hold_on(OpId id) {
  const double min_s = profile_.protocol.min_op_s;
  const Op& op = program_.ops[id];
  if (min_s <= 0 || op.in_switch) return false;
  bool is_over_links = false;
  for_each_transfer(program_, op, [&](PlaceId, PlaceId) { is_over_links = true; });
  const double lasted_s = unit_.to_s(engine_.now()) - record(id).start_s;
  const double left_s = min_s - lasted_s - record(id).seen_s;
  if (!is_over_links || left_s <= kTolerance * min_s) return false;
  resources_.clear();
  wait_ = {};
  begin_flow(id, left_s, 0);
  return true;
}

/// A copy, or a combine whose additions happen on the way or cost nothing.
void Dispatcher::begin_streaming(OpId id, const Op& op) {
  const bool is_read = costs_.reduces_by_reading(op);
  const bool by_kernel = is_read || profile_.reduction == ReductionMode::fused;
  const bool fused = op.src_count > 1 && by_kernel;
  const std::size_t result_here = op.dst.place == op.at ? 1 : 0;
  const std::size_t arrivals = transfers_.size() - (1 - result_here);
  // Each arriving operand is an addition, as far as there is something to add it to.
  const std::size_t other_additions = op.src_count - std::max<std::size_t>(arrivals, 1);
  const std::size_t here = op.src_count - arrivals + result_here;
  if (transfers_.empty()) {
    resources_.clear();
    machine_.use_memory(op.at, here, resources_);
    if (by_kernel) machine_.use_access(op.at, here, resources_);
    if (fused) machine_.use_reduction(op.at, other_additions, resources_);
    begin_flow(id, is_read ? profile_.reduce_overhead_s : profile_.local_overhead_s,
               costs_.bytes_of(op),
               machine_.block(op.at, op.lane, blocks_.rate(op.at, op.lane), kAnyRate));
    return;
  }
  const double overhead_s = costs_.start_up_s(op, transfers_);
  double way_here_s = 0;  // of the operand that comes last
  for (std::size_t i = 0; i < arrivals; ++i) {
    way_here_s = std::max(way_here_s, transfers_[i].path->latency_s);
  }
  const ResourceId block = costs_.block_of(op, transfers_);
  const bool is_alone = transfers_.size() == 1;  // blocks carry out one op at a time
  const double way_on_s = result_here != 0 ? 0 : transfers_.back().path->latency_s;
  record(id).seen_s = way_on_s + (profile_.gets_wait ? 0 : way_here_s);
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    const auto& [from, to, path] = transfers_[i];
    const bool arrives = to == op.at;
    const double awaited_s = arrives ? path->latency_s : way_here_s;
    resources_.assign(path->resources.begin(), path->resources.end());
    machine_.use_memory(arrives ? from : to, 1, resources_);
    if (i == 0) machine_.use_memory(op.at, here, resources_);
    if (by_kernel) machine_.use_access(op.at, i == 0 ? here + 1 : 1, resources_);
    if (fused && i == 0) machine_.use_reduction(op.at, other_additions, resources_);
    if (fused && i > 0 && arrives) machine_.use_reduction(op.at, 1, resources_);
    machine_.use_sender(from, resources_);
    if (!is_alone && block != kNoResource) resources_.push_back(block);
    const double latency_s = overhead_s + (profile_.gets_wait ? awaited_s : 0);
    begin_flow(id, latency_s, costs_.bytes_of(op), is_alone ? block : kNoResource);
    begin_message(id, *path, latency_s);
  }
}

/// `at` reads the sum, which the switch makes of the operands on their way, and stores it: two
/// flows at the same time. Each port carries its share once, however many operands or copies there
/// are.
void Dispatcher::begin_in_switch(OpId id, const Op& op) {
  const SwitchUse use = machine_.switch_of(op);
  const NodeId node = use.node;
  const SwitchOps* const costs = use.costs;
  const bool is_slice = blocks_.ops_are_slices();
  const double wire =
      is_slice ? costs->wire_of_slice(costs_.bytes_of(op)) : costs->wire_of(costs_.bytes_of(op));
  const double fixed_s = is_slice ? costs->slice_s : costs->fixed_s(costs_.bytes_of(op));
  const double bytes = costs_.bytes_of(op) * wire;
  const std::span<const Operand> sources = program_.sources_of(op);
  const bool reads = sources.size() > 1 || sources[0].place != op.at;
  const bool stores = op.copy_count > 0 || op.dst.place != op.at;
  const Path& here = machine_.path_from_switch(node, op.at);
  const Path& there = machine_.path_to_switch(op.at, node);
  std::vector<const Path*> read_over, stored_over;
  double way_here_s = 0, way_on_s = 0;
  if (reads) {
    for (const Operand& source : sources) {
      read_over.push_back(&machine_.path_to_switch(source.place, node));
      way_here_s = std::max(way_here_s, read_over.back()->latency_s + here.latency_s);
    }
    read_over.push_back(&here);
  }
  if (stores) {
    for_each_destination(program_, op, [&](const Operand& dst) {
      stored_over.push_back(&machine_.path_from_switch(node, dst.place));
      way_on_s = std::max(way_on_s, there.latency_s + stored_over.back()->latency_s);
    });
    stored_over.push_back(&there);
  }
  record(id).seen_s = way_on_s + (profile_.gets_wait ? 0 : way_here_s);
  for_each_transfer(program_, op, [&](PlaceId, PlaceId) { ++history_.transfers; });
  const double latency_s = fixed_s + (profile_.gets_wait ? way_here_s : 0);
  const auto flow = [&](const std::vector<const Path*>& paths) {
    for (const Path* path : paths) {
      resources_.insert(resources_.end(), path->resources.begin(), path->resources.end());
    }
    begin_flow(id, latency_s, bytes);
    for (const Path* path : paths) begin_message(id, *path, latency_s);
  };
  resources_.clear();
  for (const Operand& source : sources) machine_.use_memory(source.place, 1, resources_);
  if (!stores) machine_.use_memory(op.at, 1, resources_);
  if (reads || !stores) flow(read_over);
  if (!stores) return;
  resources_.clear();
  if (!reads) machine_.use_memory(op.at, 1, resources_);
  for_each_destination(program_, op,
                       [&](const Operand& dst) { machine_.use_memory(dst.place, 1, resources_); });
  flow(stored_over);
}

/// The first half of a combine that is reduced separately: its operands come to `at`, which waits
/// for them.
void Dispatcher::begin_arrivals(OpId id, const Op& op) {
  if (op.dst.place != op.at) transfers_.pop_back();
  const double overhead_s = costs_.fixed_s(op, transfers_);
  for (const auto& [from, to, path] : transfers_) {
    resources_.assign(path->resources.begin(), path->resources.end());
    machine_.use_memory(from, 1, resources_);
    machine_.use_memory(to, 1, resources_);
    begin_flow(id, path->latency_s + overhead_s, costs_.bytes_of(op));
    begin_message(id, *path, path->latency_s + overhead_s);
  }
}

/// The second half: they are added up, and the result is written to where it belongs.
void Dispatcher::begin_reduction(OpId id, const Op& op) {
  reducing_[id] = true;
  // A GPU launches a kernel; the threads of a host are there.
  const bool by_host = place_number(program_, op.at).kind == PlaceKind::host;
  double latency_s = by_host ? 0 : profile_.reduce_overhead_s;
  resources_.clear();
  if (op.dst.place != op.at) {
    const Path& path = machine_.path(op.at, op.dst.place, op.via);
    resources_.assign(path.resources.begin(), path.resources.end());
    latency_s = std::max(latency_s, path.overhead_s);
    record(id).seen_s = path.latency_s;
  }
  machine_.use_reduction(op.at, op.src_count - 1, resources_);
  machine_.use_memory(op.at, op.src_count, resources_);
  machine_.use_memory(op.dst.place, 1, resources_);
  machine_.use_access(op.at, op.src_count + 1, resources_);
  begin_flow(id, latency_s, costs_.bytes_of(op));
  if (!is_moving(id)) end_hold(id);
}

/// `alone`: what no other flow uses meanwhile.
void Dispatcher::begin_flow(OpId id, double latency_s, double bytes, ResourceId alone) {
  machine_.count(resources_, bytes);
  if (alone != kNoResource) machine_.count(alone, bytes);
  const Ticks latency = wait_ + unit_.from_s(std::max(latency_s, 0.0));
  const bool moves = bytes > 0 && (!resources_.empty() || alone != kNoResource);
  if (latency.value <= 0 && !moves) return;
  ++record(id).awaited;
  engine_.start(resources_, alone, latency, bytes, id);
}

/// NICs take the message, out and in, while its bytes move.
void Dispatcher::begin_message(OpId id, const Path& path, double latency_s) {
  if (path.nics.empty() || profile_.message_s <= 0) return;
  resources_.clear();
  for (const NodeId nic : path.nics) machine_.use_messages(nic, resources_);
  begin_flow(id, latency_s, machine_.message_bytes());
}

/// The lane is free; the result may still be under way.
void Dispatcher::end_hold(OpId id) {
  const Op& op = program_.ops[id];
  const Ticks now = engine_.now();
  Ticks seen = now;
  if (const double landing_s = record(id).seen_s; landing_s > 0) {
    seen = now + unit_.from_s(landing_s);
    for_each_destination(program_, op, [&](const Operand& dst) {
      landings_.add(id, seen, in_first_group(program_.fold, dst, op.length), op.length,
                    program_.fold.group_of(dst.place), now);
    });
  }
  record(id).end_s = unit_.to_s(now);
  record(id).seen_s = unit_.to_s(seen);
  ++finished_;
  shared_.free(id, now);
  if (fifos_) {
    for (const OpId freed : fifos_->end(id)) {
      set_ready(freed, std::max(ready(freed), now));
      note_cause(freed, id, program_.fold.group_of(program_.ops[freed].dst.place));
      ready_.push_back(freed);
    }
  }
  for (const OpId successor : graph_.successors(id)) {
    const int group = group_awaited(successor, id);
    const bool is_one_place = program_.ops[successor].at == op.at && group == 0;
    release(successor, id, group, is_one_place ? now : seen);
  }
  if (graph_.next_in_lane(id) != OpGraph::kNone) release(graph_.next_in_lane(id), id, 0, now);
}

/// How many groups further on the op is that it waits for, in a folded program; of several ops, one
/// of another group.
int Dispatcher::group_awaited(OpId id, OpId earlier) const {
  if (!program_.fold.is_folded()) return 0;
  const Op& op = program_.ops[id];
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
  const Op& op = program_.ops[id];
  if (op.kind != OpKind::combine) return;
  const auto await = [&](const Operand& of_op) {
    const Operand operand = in_first_group(program_.fold, of_op, op.length);
    const auto* const last = landings_.last_of(operand, op.length, engine_.now());
    if (last == nullptr || last->until <= ready(id)) return;
    set_ready(id, last->until);
    note_cause(id, last->op,
               program_.fold.wrapped(program_.fold.group_of(of_op.place) - last->group));
  };
  for (const Operand& source : program_.sources_of(op)) await(source);
  for_each_destination(program_, op, await);
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
