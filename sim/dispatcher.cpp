// SPDX-License-Identifier: Apache-2.0
#include "sim/dispatcher.h"

#include <algorithm>

#include "core/check.h"

namespace espalier {

Dispatcher::Dispatcher(const Program& program, const OpGraph& graph, const Profile& profile,
                       double message_bytes, MachineResources& machine, FlowEngine& engine)
    : program_(program),
      graph_(graph),
      profile_(profile),
      bytes_per_unit_(message_bytes / static_cast<double>(program.contract.units)),
      machine_(machine),
      engine_(engine),
      pending_(graph.waits()),
      reducing_(profile.reduction == ReductionMode::separate ? program.ops.size() : 0) {
  history_.start_s.resize(program.ops.size(), OpHistory::kNever);
  history_.end_s.resize(program.ops.size(), OpHistory::kNever);
  history_.cause.resize(program.ops.size(), OpGraph::kNone);
}

void Dispatcher::start() {
  for (OpId id = 0; id < program_.ops.size(); ++id) {
    if (graph_.waits()[id] == 0) ready_.push_back(id);
  }
  run_ready();
}

void Dispatcher::on_flow_done(OpId id) {
  CHECK(pending_[id] > 0);
  if (--pending_[id] > 0) return;
  const Op& op = program_.ops[id];
  if (reduces_separately(op) && !reducing_[id]) {
    begin_reduction(id, op);
  } else {
    finish(id);
  }
  run_ready();
}

void Dispatcher::run_ready() {
  // Ops made ready on the way are appended and reached by this loop.
  for (std::size_t i = 0; i < ready_.size(); ++i) begin(ready_[i]);
  ready_.clear();
}

void Dispatcher::begin(OpId id) {
  history_.start_s[id] = engine_.now_s();
  const Op& op = program_.ops[id];
  if (op.kind == OpKind::compute) {
    resources_.clear();
    begin_flow(id, program_.duration_s(op), 0);
    if (pending_[id] == 0) finish(id);
  } else {
    begin_combine(id, op);
  }
}

bool Dispatcher::reduces_separately(const Op& op) const {
  return op.kind == OpKind::combine && op.src_count > 1 &&
         profile_.reduction == ReductionMode::separate;
}

void Dispatcher::begin_combine(OpId id, const Op& op) {
  const PlaceId home = op.dst.place;
  paths_.clear();
  double overhead_s = 0;
  for (const Operand& src : program_.sources_of(op)) {
    if (src.place == home) continue;
    paths_.push_back(&machine_.path(src.place, home, op.via));
    overhead_s = std::max(overhead_s, paths_.back()->overhead_s);
  }
  if (paths_.empty()) return begin_local(id, op);

  history_.transfers += static_cast<std::int64_t>(paths_.size());
  const std::size_t local = op.src_count - paths_.size();
  const bool separate = reduces_separately(op);
  const bool fused = op.src_count > 1 && profile_.reduction == ReductionMode::fused;
  std::size_t flow = 0;
  for (const Operand& src : program_.sources_of(op)) {
    if (src.place == home) continue;
    const bool is_first = flow == 0;
    const Path& path = *paths_[flow++];
    resources_.assign(path.resources.begin(), path.resources.end());
    machine_.use_memory(src.place, 1, resources_);
    if (separate) {
      machine_.use_memory(home, 1, resources_);
    } else if (is_first) {
      machine_.use_memory(home, local + 1, resources_);
    }
    if (fused) machine_.use_reduction(op.at, is_first ? 1 + local : 1, resources_);
    begin_flow(id, path.latency_s + overhead_s, bytes_of(op));
  }
  if (pending_[id] > 0) return;
  if (separate) {
    begin_reduction(id, op);
  } else {
    finish(id);
  }
}

void Dispatcher::begin_local(OpId id, const Op& op) {
  if (reduces_separately(op)) return begin_reduction(id, op);
  resources_.clear();
  machine_.use_memory(op.dst.place, op.src_count + 1, resources_);
  if (op.src_count > 1 && profile_.reduction == ReductionMode::fused) {
    machine_.use_reduction(op.at, op.src_count, resources_);
  }
  begin_flow(id, profile_.local_overhead_s, bytes_of(op));
  if (pending_[id] == 0) finish(id);
}

void Dispatcher::begin_reduction(OpId id, const Op& op) {
  reducing_[id] = true;
  resources_.clear();
  machine_.use_reduction(op.at, op.src_count, resources_);
  machine_.use_memory(op.dst.place, op.src_count + 1, resources_);
  begin_flow(id, profile_.reduce_overhead_s, bytes_of(op));
  if (pending_[id] == 0) finish(id);
}

void Dispatcher::begin_flow(OpId id, double latency_s, double bytes) {
  machine_.count(resources_, bytes);
  if (latency_s <= 0 && (bytes <= 0 || resources_.empty())) return;
  ++pending_[id];
  engine_.start(resources_, latency_s, bytes, id);
}

void Dispatcher::finish(OpId id) {
  history_.end_s[id] = engine_.now_s();
  ++finished_;
  for (const OpId successor : graph_.successors(id)) release(successor, id);
  if (graph_.next_in_lane(id) != OpGraph::kNone) release(graph_.next_in_lane(id), id);
}

void Dispatcher::release(OpId id, OpId cause) {
  CHECK(pending_[id] > 0);
  if (--pending_[id] > 0) return;
  history_.cause[id] = cause;
  ready_.push_back(id);
}

}  // namespace espalier
