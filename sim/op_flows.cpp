// SPDX-License-Identifier: Apache-2.0
#include "sim/op_flows.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace espalier {
namespace {

/// What is not limited by links.
constexpr double kAnyRate = std::numeric_limits<double>::infinity();

}  // namespace

void FlowList::clear() {
  flows.clear();
  resources.clear();
  landing_s = 0;
  transfers = 0;
}

void FlowList::add(double latency_s, double bytes, ResourceId alone) {
  const std::size_t first =
      flows.empty() ? 0 : flows.back().first_resource + flows.back().resource_count;
  flows.push_back({latency_s, bytes, alone, static_cast<std::uint32_t>(first),
                   static_cast<std::uint32_t>(resources.size() - first)});
}

double narrowest_bytes_per_s(const OpFlows& flows, const FlowList& list,
                             const FlowList::Flow& flow) {
  double bytes_per_s = flow.alone == kNoResource ? kAnyRate : flows.bytes_per_s(flow.alone);
  for (const ResourceId one : list.resources_of(flow)) {
    bytes_per_s = std::min(bytes_per_s, flows.bytes_per_s(one));
  }
  return bytes_per_s;
}

double least_s(const OpFlows& flows, const FlowList& list) {
  double least_s = 0;
  for (const FlowList::Flow& flow : list.flows) {
    least_s = std::max(least_s, std::max(flow.latency_s, 0.0) +
                                    flow.bytes / narrowest_bytes_per_s(flows, list, flow));
  }
  return least_s;
}

MachineFlows::MachineFlows(const Program& program, const BlockMap& blocks, const Profile& profile,
                           double message_bytes, MachineResources& machine, TextFindings* text)
    : program_(program),
      blocks_(blocks),
      profile_(profile),
      machine_(machine),
      costs_(program, blocks, profile, message_bytes, machine, text) {}

MachineFlows::MachineFlows(const Program& program, const BlockMap& blocks, const Profile& profile,
                           double message_bytes, MachineResources& machine,
                           std::vector<OpTurn> turns, int groups)
    : program_(program),
      blocks_(blocks),
      profile_(profile),
      machine_(machine),
      costs_(program, blocks, profile, message_bytes, machine, std::move(turns), groups) {}

/// The machine counts what it carries.
void MachineFlows::add(double latency_s, double bytes, ResourceId alone) {
  list_.add(latency_s, bytes, alone);
  count(list_.flows.back(), list_.resources_of(list_.flows.back()));
}

void MachineFlows::count(const FlowList::Flow& flow, std::span<const ResourceId> resources,
                         double times) {
  machine_.count(resources, flow.bytes * times);
  if (flow.alone != kNoResource) machine_.count(flow.alone, flow.bytes * times);
}

const FlowList& MachineFlows::again(const FlowList& list, double times) {
  for (const FlowList::Flow& flow : list.flows) count(flow, list.resources_of(flow), times);
  return list;
}

const FlowList& MachineFlows::begin(OpId id) {
  list_.clear();
  const Op& op = program_.ops[id];
  if (op.kind != OpKind::combine) {
    const double duration_s = program_.duration_s(op);
    add(op.kind == OpKind::compute ? machine_.computing_s(op.at, duration_s) : duration_s, 0);
  } else if (op.in_switch) {
    pass_switch(op);
  } else {
    costs_.transfers_of(op, transfers_);
    list_.transfers = static_cast<std::int64_t>(transfers_.size());
    if (costs_.reduces_separately(op)) {
      arrive(op);
    } else {
      stream(op);
    }
  }
  return list_;
}

// Costs depend on a lane only through its width and its block (OpCosts::fixed_s, local_s and
// block_of). Where an op has several transfers, the block is among the resources that they share.
bool MachineFlows::begin_on_lane(OpId id, OpId other, const FlowList& known, FlowList& made) {
  const Op& op = program_.ops[id];
  const std::uint16_t lane = program_.ops[other].lane;
  const bool is_plain = op.kind == OpKind::combine && !op.in_switch && known.transfers <= 1 &&
                        !costs_.reduces_separately(op) && !costs_.is_far_on(op);
  if (!is_plain || blocks_.width(op.at, op.lane) != blocks_.width(op.at, lane)) {
    return false;
  }
  made = known;
  ResourceId& block = made.flows.front().alone;
  if (block != kNoResource) {
    block = machine_.block(op.at, op.lane, blocks_.rate(op.at, op.lane), kAnyRate);
  }
  again(made);
  return true;
}

/// A copy, or a combine whose additions happen on the way or cost nothing.
void MachineFlows::stream(const Op& op) {
  const bool is_read = costs_.reduces_by_reading(op);
  const bool by_kernel = is_read || profile_.reduction == ReductionMode::fused;
  const bool fused = op.src_count > 1 && by_kernel;
  const std::size_t result_here = op.dst.place == op.at ? 1 : 0;
  const std::size_t arrivals = transfers_.size() - (1 - result_here);
  // Each arriving operand is an addition, as far as there is something to add it to.
  const std::size_t other_additions = op.src_count - std::max<std::size_t>(arrivals, 1);
  const std::size_t here = op.src_count - arrivals + result_here;
  if (transfers_.empty()) {
    machine_.use_memory(op.at, here, list_.resources);
    if (by_kernel) machine_.use_access(op.at, here, list_.resources);
    if (fused) machine_.use_reduction(op.at, other_additions, list_.resources);
    add(is_read ? profile_.reduce_overhead_s : profile_.local_overhead_s, costs_.bytes_of(op),
        machine_.block(op.at, op.lane, blocks_.rate(op.at, op.lane), kAnyRate));
    return;
  }
  double overhead_s = costs_.start_up_s(op, transfers_);
  double way_here_s = 0;  // of the operand that comes last
  for (std::size_t i = 0; i < arrivals; ++i) {
    way_here_s = std::max(way_here_s, transfers_[i].path->latency_s);
  }
  ResourceId block = costs_.block_of(op, transfers_);
  const OpArrivals kinds = costs_.arrivals_of(op);
  const bool is_alone = transfers_.size() == 1;  // blocks carry out one op at a time
  if (is_alone && costs_.is_adrift(op, transfers_[0])) {
    block = costs_.slowed_block_of(op, transfers_[0], overhead_s);
    overhead_s = 0;
  }
  const double way_on_s = result_here != 0 ? 0 : transfers_.back().path->latency_s;
  list_.landing_s = way_on_s + (profile_.gets_wait ? 0 : way_here_s);
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    const auto& [from, to, path] = transfers_[i];
    const bool arrives = to == op.at;
    const double awaited_s = arrives ? path->latency_s : way_here_s;
    list_.resources.insert(list_.resources.end(), path->resources.begin(), path->resources.end());
    machine_.use_exchange(from, to, arrives ? kinds.operands : kinds.result, list_.resources);
    machine_.use_memory(arrives ? from : to, 1, list_.resources);
    if (i == 0) machine_.use_memory(op.at, here, list_.resources);
    if (by_kernel) machine_.use_access(op.at, i == 0 ? here + 1 : 1, list_.resources);
    if (fused && i == 0) machine_.use_reduction(op.at, other_additions, list_.resources);
    if (fused && i > 0 && arrives) machine_.use_reduction(op.at, 1, list_.resources);
    machine_.use_sender(from, list_.resources);
    // What several peers have sent lies in FIFOs here: their blocks have moved it.
    const bool is_sent_by_peer = i > 0 && arrives && profile_.fifo_steps > 0;
    if (!is_alone && block != kNoResource && !is_sent_by_peer) list_.resources.push_back(block);
    const double latency_s = overhead_s + (profile_.gets_wait ? awaited_s : 0);
    add(latency_s, costs_.bytes_of(op), is_alone ? block : kNoResource);
    send_message(*path, costs_.bytes_of(op));
  }
}

/// `at` reads the sum, which the switch makes of the operands on their way, and stores it: two
/// flows at the same time. Each port carries its share once, however many operands or copies there
/// are.
void MachineFlows::pass_switch(const Op& op) {
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
  list_.landing_s = way_on_s + (profile_.gets_wait ? 0 : way_here_s);
  for_each_transfer(program_, op, [&](PlaceId, PlaceId) { ++list_.transfers; });
  const double latency_s = fixed_s + (profile_.gets_wait ? way_here_s : 0);
  const auto flow = [&](const std::vector<const Path*>& paths) {
    for (const Path* path : paths) {
      list_.resources.insert(list_.resources.end(), path->resources.begin(), path->resources.end());
    }
    add(latency_s, bytes);
    for (const Path* path : paths) send_message(*path, costs_.bytes_of(op));
  };
  if (reads || !stores) {
    for (const Operand& source : sources) machine_.use_memory(source.place, 1, list_.resources);
    if (!stores) machine_.use_memory(op.at, 1, list_.resources);
    flow(read_over);
  }
  if (!stores) return;
  if (!reads) machine_.use_memory(op.at, 1, list_.resources);
  for_each_destination(program_, op, [&](const Operand& dst) {
    machine_.use_memory(dst.place, 1, list_.resources);
  });
  flow(stored_over);
}

/// The first half of a combine that is reduced separately: its operands come to `at`, which waits
/// for them.
void MachineFlows::arrive(const Op& op) {
  if (op.dst.place != op.at) transfers_.pop_back();
  const double overhead_s = costs_.fixed_s(op, transfers_);
  const OpArrivals arrivals = costs_.arrivals_of(op);
  for (const auto& [from, to, path] : transfers_) {
    list_.resources.insert(list_.resources.end(), path->resources.begin(), path->resources.end());
    machine_.use_exchange(from, to, arrivals.operands, list_.resources);
    machine_.use_memory(from, 1, list_.resources);
    machine_.use_memory(to, 1, list_.resources);
    add(path->latency_s + overhead_s, costs_.bytes_of(op));
    send_message(*path, costs_.bytes_of(op));
  }
}

/// The second half: they are added up, and the result is written to where it belongs.
const FlowList& MachineFlows::reduce(OpId id) {
  list_.clear();
  const Op& op = program_.ops[id];
  // A GPU launches a kernel; the threads of a host are there.
  const bool by_host = place_number(program_, op.at).kind == PlaceKind::host;
  double latency_s = by_host ? 0 : profile_.reduce_overhead_s;
  const bool is_sent = op.dst.place != op.at;
  if (is_sent) {
    const Path& path = machine_.path(op.at, op.dst.place, op.via);
    list_.resources.insert(list_.resources.end(), path.resources.begin(), path.resources.end());
    machine_.use_exchange(op.at, op.dst.place, costs_.arrivals_of(op).result, list_.resources);
    latency_s = std::max(latency_s, path.start_up.of(costs_.bytes_of(op)));
    list_.landing_s = path.latency_s;
  }
  machine_.use_reduction(op.at, op.src_count - 1, list_.resources);
  machine_.use_memory(op.at, op.src_count, list_.resources);
  machine_.use_memory(op.dst.place, 1, list_.resources);
  machine_.use_access(op.at, op.src_count + 1, list_.resources);
  add(latency_s, costs_.bytes_of(op));
  if (is_sent) send_message(machine_.path(op.at, op.dst.place, op.via), costs_.bytes_of(op));
  return list_;
}

/// Proxies post the message while its bytes move, from when the op begins: the hop of an op whose
/// message nobody else's hold up has time for that. \pre `bytes` of data
void MachineFlows::send_message(const Path& path, double bytes) {
  if (!path.sends && !path.receives) return;
  if (machine_.message_bytes() > 0) {
    if (path.sends) machine_.use_proxy(*path.sends, list_.resources);
    if (path.receives) machine_.use_proxy(*path.receives, list_.resources);
    add(0, machine_.message_bytes());
  }
  const double checked_bytes = path.sends ? machine_.checked_bytes(bytes) : 0;
  if (checked_bytes <= 0) return;
  machine_.use_proxy(*path.sends, list_.resources);
  add(0, checked_bytes);
}

}  // namespace espalier
