// SPDX-License-Identifier: Apache-2.0
#include "sim/working_sets.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace espalier {
namespace {

/// Units of all slices, those in several of them once.
std::int64_t units_of(std::vector<Slice>& slices) {
  const auto order = [](const Slice& slice) {
    return std::tuple(slice.place, slice.buffer, slice.begin);
  };
  std::ranges::sort(slices, {}, order);
  std::int64_t units = 0;
  const Slice* last = nullptr;
  std::int64_t end = 0;
  for (const Slice& slice : slices) {
    const bool is_new =
        last == nullptr || last->place != slice.place || last->buffer != slice.buffer;
    const std::int64_t begin = is_new ? slice.begin : std::max(slice.begin, end);
    const std::int64_t slice_end = slice.begin + slice.length;
    units += std::max<std::int64_t>(0, slice_end - begin);
    end = is_new ? slice_end : std::max(end, slice_end);
    last = &slice;
  }
  return units;
}

}  // namespace

WorkingSets::WorkingSets(const Program& program, const Target& target, double message_bytes) {
  const Topology& machine = target.router->topology();
  if (std::ranges::all_of(machine.memories,
                          [](const auto& one) { return one.second.working_sets.empty(); })) {
    return;
  }
  struct Touched {
    std::vector<Slice> slices;
    std::set<NodeId> nodes;
    std::int64_t arriving_units = 0;
  };
  std::map<std::pair<int, std::string>, Touched> memories;
  const auto memory_of = [&](PlaceId place) -> Touched* {
    const NodeId id = node_of(program, target.placement, place);
    const Node& node = machine.node(id);
    if (node.memory.empty()) return nullptr;
    Touched& memory = memories[{node.host, node.memory}];
    memory.nodes.insert(id);
    return &memory;
  };
  const auto touch = [&](const Operand& operand, std::uint32_t length) {
    Touched* const memory = memory_of(operand.place);
    if (memory != nullptr) memory->slices.push_back(slice(operand, length));
  };
  const bool arrives = target.router->profile().reduction == ReductionMode::separate;
  for (const Op& op : program.ops) {
    if (op.kind != OpKind::combine) continue;
    for_each_destination(program, op, [&](const Operand& dst) { touch(dst, op.length); });
    Touched* const here = arrives && op.src_count > 1 ? memory_of(op.at) : nullptr;
    for (const Operand& source : program.sources_of(op)) {
      touch(source, op.length);
      if (here != nullptr && source.place != op.at) here->arriving_units += op.length;
    }
  }
  for (auto& [key, touched] : memories) {
    const auto units = static_cast<double>(units_of(touched.slices) + touched.arriving_units);
    const double bytes = units * message_bytes / static_cast<double>(program.contract.units) /
                         static_cast<double>(touched.nodes.size());
    const auto speeds = machine.memories.at(key.second).speeds_for(bytes);
    if (speeds) by_host_and_name_.emplace(key, *speeds);
  }
}

const WorkingSet* WorkingSets::of(const Node& node) const {
  const auto known = by_host_and_name_.find({node.host, node.memory});
  return known == by_host_and_name_.end() ? nullptr : &known->second;
}

}  // namespace espalier
