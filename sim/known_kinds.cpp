// SPDX-License-Identifier: Apache-2.0
#include "sim/known_kinds.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "core/hash.h"
#include "core/hash_numbers.h"

namespace espalier {
namespace {

/// Protocols differ in what costs the same, and so do messages of which some are passed on in
/// slices.
constexpr std::size_t kMaxKnown = 8;

/// Hashes figures by which of them are equal: each is numbered when it first comes.
class Pattern {
 public:
  /// Faster than mix64, which comes at the end: programs have thousands of flows.
  void add(std::uint64_t what) {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
    hash_ = (hash_ ^ what) * kOdd;
    hash_ ^= hash_ >> 32;
  }
  void add_figure(double figure) {
    add(numbers_.number(mix64(std::bit_cast<std::uint64_t>(figure))));
  }
  std::uint64_t hash() const { return mix64(hash_); }

 private:
  HashNumbers numbers_;
  std::uint64_t hash_ = 0;
};

/// What `LaneKinds` and `AwaitedOps` look at. Raises `resources` beyond the number of each.
void add_list(const FlowList& list, OpShapes& shapes, ResourceId& resources, Pattern& pattern) {
  pattern.add(list.landing_s > 0 ? 1 : 0);  // of numbered figures, none is known to be 0
  pattern.add_figure(list.landing_s);
  pattern.add(static_cast<std::uint64_t>(list.transfers));
  pattern.add(list.flows.size());
  for (const FlowList::Flow& flow : list.flows) {
    pattern.add_figure(flow.latency_s);
    pattern.add_figure(flow.bytes);
    pattern.add_figure(flow.alone == kNoResource ? 0 : shapes.bytes_per_s(flow.alone));
    pattern.add(flow.resource_count);
    for (const ResourceId one : list.resources_of(flow)) {
      pattern.add(one);
      resources = std::max(resources, one + 1);
    }
  }
}

}  // namespace

KindsKey kinds_key(const Simulation& of, OpShapes& shapes, const MachineResources& machine) {
  const ShapeNumbers& numbers = shapes.numbers();
  Pattern pattern;
  for (const std::uint32_t shape : numbers.by_op()) pattern.add(shape);
  pattern.add(of.profile().fifo_steps > 0 ? 1 : 0);
  pattern.add(of.blocks.shared_blocks());
  ResourceId resources = 0;
  for (const OpId id : numbers.examples()) {
    const Op& op = of.program.ops[id];
    pattern.add(of.blocks.width(op.at, op.lane));
    pattern.add(of.blocks.shared_block(op.at, op.lane));
    add_list(shapes.begin(id), shapes, resources, pattern);
    const bool reduces = shapes.reduces_separately(id);
    pattern.add(reduces ? 1 : 0);
    if (reduces) add_list(shapes.reduce(id), shapes, resources, pattern);
  }
  for (ResourceId id = 0; id < resources; ++id) {
    pattern.add_figure(shapes.bytes_per_s(id));
    pattern.add(machine.is_link(id) ? 1 : 0);
  }
  return pattern.hash();
}

const KnownKinds* KindsOfProgram::find(const KindsKey& key, OpShapes& shapes) const {
  const auto known = std::ranges::find_if(known_, [&](const KnownKinds& one) {
    return one.key == key && one.outlasting.is_so_for(shapes);
  });
  return known == known_.end() ? nullptr : &*known;
}

const KnownKinds& KindsOfProgram::add(KnownKinds known) {
  if (known_.size() == kMaxKnown) known_.pop_back();
  return known_.emplace_front(std::move(known));
}

}  // namespace espalier
