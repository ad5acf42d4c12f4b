// SPDX-License-Identifier: Apache-2.0
#include "sim/known_kinds.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "core/hash.h"
#include "core/hash_numbers.h"
#include "core/keep_one_of_each.h"

namespace espalier {
namespace {

/// Protocols differ in what costs the same, and so do messages of which some are passed on in
/// slices.
constexpr std::size_t kMaxKnown = 8;
/// A machine is another one under each profile and protocol.
constexpr std::size_t kMaxMachines = 4;

/// Hashes figures by which of them are equal: each is numbered when it first comes.
class Pattern {
 public:
  /// Faster than mix64, which comes at the end: programs have thousands of flows.
  void add(std::uint64_t what) {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
    hash_ = (hash_ ^ what) * kOdd;
    hash_ ^= hash_ >> 32;
  }
  void add_figure(double figure) { add_hash(mix64(std::bit_cast<std::uint64_t>(figure))); }
  void add_hash(std::uint64_t hash) { add(numbers_.number(hash)); }
  std::uint64_t hash() const { return mix64(hash_); }

 private:
  HashNumbers numbers_;
  std::uint64_t hash_ = 0;
};

/// What `LaneKinds` and `AwaitedOps` look at beside costs. Raises `resources` beyond the number of
/// each.
void add_list(const FlowList& list, OpShapes& shapes, ResourceId& resources, Pattern& pattern) {
  pattern.add(list.landing_s > 0 ? 1 : 0);
  pattern.add(list.flows.size());
  for (const FlowList::Flow& flow : list.flows) {
    pattern.add_figure(flow.alone == kNoResource ? 0 : shapes.bytes_per_s(flow.alone));
    pattern.add(flow.resource_count);
    for (const ResourceId one : list.resources_of(flow)) {
      pattern.add(one);
      resources = std::max(resources, one + 1);
    }
  }
}

/// Whether as many flows use the same.
bool use_same(const FlowList& a, const FlowList& b) {
  const auto is_same = [](const FlowList::Flow& one, const FlowList::Flow& other) {
    return one.alone == other.alone && one.resource_count == other.resource_count;
  };
  return a.resources == b.resources && std::ranges::equal(a.flows, b.flows, is_same);
}

/// By shapes of one of each kind.
AwaitedOps::Outlasting in_one(const AwaitedOps::Outlasting& whole, const OneOfAlike& one,
                              const ShapeNumbers& numbers) {
  const auto shape = [&](std::uint32_t of_whole) {
    return one.shapes[one.number[numbers.examples()[of_whole]]];
  };
  AwaitedOps::Outlasting made{{}, whole.do_outlast};
  for (const auto& [op, before] : whole.shapes) made.shapes.emplace_back(shape(op), shape(before));
  keep_one_of_each(made.shapes);
  return made;
}

}  // namespace

KindsKey kinds_key(const Simulation& of, OpShapes& shapes, const AlikeCosts& costs,
                   const MachineResources& machine) {
  const ShapeNumbers& numbers = shapes.numbers();
  Pattern pattern;
  pattern.add(numbers.hash());
  pattern.add(of.profile().fifo_steps > 0 ? 1 : 0);
  pattern.add(of.blocks.shared_blocks());
  ResourceId resources = 0;
  for (std::size_t shape = 0; shape < numbers.examples().size(); ++shape) {
    const OpId id = numbers.examples()[shape];
    const Op& op = of.program.ops[id];
    pattern.add(of.blocks.width(op.at, op.lane));
    pattern.add(of.blocks.shared_block(op.at, op.lane));
    pattern.add_hash(costs[shape]);
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

KindsOnMachine::Key::Key(const Simulation& of)
    : program(&of.program),
      target(of.target),
      router(of.target.router->id()),
      blocks(of.options.blocks) {}

KindsOnMachine::Machine::Machine(const Simulation& of, FlowEngine& engine)
    : key(of),
      blocks(of.blocks),
      resources(of.program, key.target, of.unit, engine, of.message_bytes) {}

KindsOnMachine::KindsOnMachine(std::unique_ptr<Machine> machine,
                               std::shared_ptr<const KnownKinds> kinds, const CostInputs& inputs,
                               const ShapeNumbers& numbers,
                               std::vector<OpShapes::Shape> of_examples, std::int64_t transfers)
    : machine_(std::move(machine)),
      kinds_(std::move(kinds)),
      outlasting_(in_one(kinds_->outlasting, *kinds_->one, numbers)),
      inputs_(inputs),
      of_examples_(std::move(of_examples)),
      transfers_(transfers) {
  const OneOfAlike& one = *kinds_->one;
  shapes_.reserve(one.shapes.size());
  for (const std::uint32_t shape : one.shapes) {
    shapes_.push_back(one.shape_of_whole(shape, numbers));
  }
}

bool KindsOnMachine::holds_for(const std::vector<OpShapes::Shape>& of_examples,
                               const ShapeNumbers& numbers, OpFlows& flows) const {
  const auto use_the_same = [](const OpShapes::Shape& a, const OpShapes::Shape& b) {
    return use_same(a.begin, b.begin) && use_same(a.reduce, b.reduce);
  };
  return std::ranges::equal(of_examples, of_examples_, use_the_same) &&
         outlasting_.is_so_for(numbers, flows);
}

MachineFlows KindsOnMachine::flows(double message_bytes) {
  const Program& one = kinds_->one->program;
  const double bytes_per_unit = message_bytes / static_cast<double>(one.contract.units);
  std::vector<OpTurn> turns;
  turns.reserve(one.ops.size());
  for (OpId id = 0; id < one.ops.size(); ++id) {
    turns.push_back(inputs_.turn(shapes_[id], one.ops[id], bytes_per_unit));
  }
  return {one,
          machine_->blocks,
          machine_->key.target.router->profile(),
          message_bytes,
          machine_->resources,
          std::move(turns),
          1};
}

std::shared_ptr<const KnownKinds> KindsOfProgram::find(const KindsKey& key,
                                                       OpShapes& shapes) const {
  const auto known = std::ranges::find_if(known_, [&](const auto& one) {
    return one->key == key && one->outlasting.is_so_for(shapes.numbers(), shapes);
  });
  return known == known_.end() ? nullptr : *known;
}

std::shared_ptr<const KnownKinds> KindsOfProgram::add(KnownKinds known) {
  if (known_.size() == kMaxKnown) known_.pop_back();
  const auto kept = std::make_shared<KnownKinds>(std::move(known));
  if (kept->one) kept->graph.emplace(kept->one->program, kept->one->awaits_result);
  return known_.emplace_front(kept);
}

KindsOnMachine* KindsOfProgram::on_machine_of(const Simulation& of) {
  const auto known = std::ranges::find(on_machines_, KindsOnMachine::Key(of), &KindsOnMachine::key);
  return known == on_machines_.end() ? nullptr : known->get();
}

void KindsOfProgram::keep(std::shared_ptr<KindsOnMachine> latest) {
  std::erase_if(on_machines_, [&](const auto& one) { return one->key() == latest->key(); });
  if (on_machines_.size() == kMaxMachines) on_machines_.pop_back();
  on_machines_.push_front(std::move(latest));
}

}  // namespace espalier
