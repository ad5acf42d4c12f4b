// SPDX-License-Identifier: Apache-2.0
#include "sim/dispatcher.h"

#include <algorithm>

#include "core/check.h"

namespace espalier {

Dispatcher::Dispatcher(const Program& program, const OpGraph& graph, const Profile& profile,
                       double message_bytes, MachineResources& machine, const TimeUnit& unit,
                       FlowEngine& engine)
    : program_(program),
      graph_(graph),
      profile_(profile),
      bytes_per_unit_(message_bytes / static_cast<double>(program.contract.units)),
      machine_(machine),
      unit_(unit),
      engine_(engine),
      progress_(program.ops.size()),
      landings_(static_cast<std::size_t>(program.places())),
      reducing_(profile.reduction == ReductionMode::separate ? program.ops.size() : 0) {
  for (OpId id = 0; id < program.ops.size(); ++id) progress_[id].ends_awaited = graph.waits()[id];
  history_.start_s.resize(program.ops.size(), OpHistory::kNever);
  history_.end_s.resize(program.ops.size(), OpHistory::kNever);
  history_.seen_s.resize(program.ops.size(), OpHistory::kNever);
  history_.cause.resize(program.ops.size(), OpGraph::kNone);
}

void Dispatcher::start() {
  for (OpId id = 0; id < program_.ops.size(); ++id) {
    if (graph_.waits()[id] == 0) ready_.push_back(id);
  }
  run_ready();
}

void Dispatcher::on_flow_done(OpId id) {
  CHECK(is_moving(id));
  if (--progress_[id].flows_in_flight > 0) return;
  const Op& op = program_.ops[id];
  if (reduces_separately(op) && !reducing_[id]) {
    wait_ = {};
    begin_reduction(id, op);
  } else {
    end_hold(id);
  }
  run_ready();
}

void Dispatcher::run_ready() {
  // Ops made ready on the way are appended and reached by this loop.
  for (std::size_t i = 0; i < ready_.size(); ++i) begin(ready_[i]);
  ready_.clear();
}

void Dispatcher::begin(OpId id) {
  await_landings(id);
  wait_ = TimeUnit::between(engine_.now(), progress_[id].ready);
  history_.start_s[id] = unit_.to_s(engine_.now() + wait_);
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

bool Dispatcher::reduces_separately(const Op& op) const {
  return op.kind == OpKind::combine && op.src_count > 1 &&
         profile_.reduction == ReductionMode::separate;
}

void Dispatcher::begin_combine(OpId id, const Op& op) {
  transfers_.clear();
  for_each_transfer(program_, op, [&](PlaceId from, PlaceId to) {
    transfers_.push_back({from, to, &machine_.path(from, to, op.via)});
  });
  history_.transfers += static_cast<std::int64_t>(transfers_.size());
  if (reduces_separately(op)) {
    begin_arrivals(id, op);
    if (!is_moving(id)) begin_reduction(id, op);
  } else {
    begin_streaming(id, op);
    if (!is_moving(id)) end_hold(id);
  }
}

double Dispatcher::largest_overhead_s() const {
  double largest_s = 0;
  for (const Transfer& transfer : transfers_) {
    largest_s = std::max(largest_s, transfer.path->overhead_s);
  }
  return largest_s;
}

/// A copy, or a combine whose additions happen on the way or cost nothing.
void Dispatcher::begin_streaming(OpId id, const Op& op) {
  const bool by_kernel = profile_.reduction == ReductionMode::fused;
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
    begin_flow(id, profile_.local_overhead_s, bytes_of(op));
    return;
  }
  const double overhead_s = largest_overhead_s();
  double way_here_s = 0;  // of the operand that comes last
  for (std::size_t i = 0; i < arrivals; ++i) {
    way_here_s = std::max(way_here_s, transfers_[i].path->latency_s);
  }
  const double way_on_s = result_here != 0 ? 0 : transfers_.back().path->latency_s;
  progress_[id].landing_s = way_on_s + (profile_.gets_wait ? 0 : way_here_s);
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
    begin_flow(id, overhead_s + (profile_.gets_wait ? awaited_s : 0), bytes_of(op));
  }
}

/// The first half of a combine that is reduced separately: its operands come to `at`, which waits
/// for them.
void Dispatcher::begin_arrivals(OpId id, const Op& op) {
  if (op.dst.place != op.at) transfers_.pop_back();
  const double overhead_s = largest_overhead_s();
  for (const auto& [from, to, path] : transfers_) {
    resources_.assign(path->resources.begin(), path->resources.end());
    machine_.use_memory(from, 1, resources_);
    machine_.use_memory(to, 1, resources_);
    begin_flow(id, path->latency_s + overhead_s, bytes_of(op));
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
    progress_[id].landing_s = path.latency_s;
  }
  machine_.use_reduction(op.at, op.src_count - 1, resources_);
  machine_.use_memory(op.at, op.src_count, resources_);
  machine_.use_memory(op.dst.place, 1, resources_);
  machine_.use_access(op.at, op.src_count + 1, resources_);
  begin_flow(id, latency_s, bytes_of(op));
  if (!is_moving(id)) end_hold(id);
}

void Dispatcher::begin_flow(OpId id, double latency_s, double bytes) {
  machine_.count(resources_, bytes);
  const Ticks latency = wait_ + unit_.from_s(std::max(latency_s, 0.0));
  if (latency.value <= 0 && (bytes <= 0 || resources_.empty())) return;
  ++progress_[id].flows_in_flight;
  engine_.start(resources_, latency, bytes, id);
}

/// The lane is free; the result may still be under way.
void Dispatcher::end_hold(OpId id) {
  const Op& op = program_.ops[id];
  const Ticks now = engine_.now();
  Ticks seen = now;
  if (progress_[id].landing_s > 0) {
    seen = now + unit_.from_s(progress_[id].landing_s);
    landings_[static_cast<std::size_t>(op.dst.place)].push_back({id, seen});
  }
  history_.end_s[id] = unit_.to_s(now);
  history_.seen_s[id] = unit_.to_s(seen);
  ++finished_;
  for (const OpId successor : graph_.successors(id)) {
    release(successor, id, program_.ops[successor].at == op.at ? now : seen);
  }
  if (graph_.next_in_lane(id) != OpGraph::kNone) release(graph_.next_in_lane(id), id, now);
}

/// What an op reads or overwrites has to be there.
void Dispatcher::await_landings(OpId id) {
  const Op& op = program_.ops[id];
  if (op.kind != OpKind::combine) return;
  const auto await = [&](const Operand& operand) {
    std::vector<Landing>& landings = landings_[static_cast<std::size_t>(operand.place)];
    if (landings.empty()) return;
    std::erase_if(landings, [&](const Landing& one) { return one.until <= engine_.now(); });
    for (const auto& [earlier, until] : landings) {
      const Op& writer = program_.ops[earlier];
      if (until <= progress_[id].ready) continue;
      if (!overlap(slice(writer.dst, writer.length), slice(operand, op.length))) continue;
      progress_[id].ready = until;
      history_.cause[id] = earlier;
    }
  };
  for (const Operand& source : program_.sources_of(op)) await(source);
  await(op.dst);
}

/// `date`: when what `id` waited for can be used.
void Dispatcher::release(OpId id, OpId cause, Ticks date) {
  Progress& progress = progress_[id];
  CHECK(progress.ends_awaited > 0);
  if (history_.cause[id] == OpGraph::kNone || !(date < progress.ready)) {
    progress.ready = date;
    history_.cause[id] = cause;
  }
  if (--progress.ends_awaited == 0) ready_.push_back(id);
}

}  // namespace espalier
