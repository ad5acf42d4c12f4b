// SPDX-License-Identifier: Apache-2.0
#include "sim/one_of_alike.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/check.h"
#include "core/interruption.h"

namespace espalier {

/// Who stands for a kind, and for how many.
struct OneOfAlike::Kinds {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  explicit Kinds(const LaneKinds& kinds) {
    for (std::uint32_t lane = 0; lane < kinds.lanes(); ++lane) {
      const std::uint32_t kind = kinds.kind_of_lane(lane);
      if (kind == lanes.size()) lanes.push_back(0);
      ++lanes[kind];
    }
    example.resize(lanes.size(), kNone);
    for (std::uint32_t lane = 0; lane < kinds.lanes(); ++lane) {
      std::uint32_t& of_kind = example[kinds.kind_of_lane(lane)];
      if (of_kind != kNone) continue;
      of_kind = lane;
      // Lanes of one block are of different kinds, and stand for those of like blocks together.
      for (const std::uint32_t other : kinds.sharing(lane)) {
        example[kinds.kind_of_lane(other)] = other;
      }
    }
  }

  std::vector<int> lanes;              ///< how many, by kind
  std::vector<std::uint32_t> example;  ///< by kind: the lane that stands for all
};

OneOfAlike::OneOfAlike(const LaneKinds::Ops& whole, const LaneKinds& kinds) {
  const Kinds of(kinds);
  add_ops(whole, kinds, of);
  add_shapes(whole, kinds, of);
  add_resources(kinds);
}

/// In the order in which the first op of each kind comes: as in the whole, ops then mostly come
/// after those they wait for.
void OneOfAlike::add_ops(const LaneKinds::Ops& whole, const LaneKinds& kinds, const Kinds& of) {
  const Program& all = whole.program;
  program.name = all.name;
  program.contract = all.contract;
  program.hosts = all.hosts;
  program.relays = all.relays;
  program.vias = all.vias;
  program.durations_s = all.durations_s;
  constexpr OpId kNew = ~OpId{0};
  std::vector<std::size_t> first;  // by kind, into the numbers of its ops
  std::vector<OpId> numbers;
  for (const std::uint32_t lane : of.example) {
    first.push_back(numbers.size());
    numbers.resize(numbers.size() + kinds.ops_of(lane), kNew);
  }
  OpId count = 0;
  number.reserve(all.ops.size());
  for (OpId id = 0; id < all.ops.size(); ++id) {
    check_interruption_at(id);
    OpId& one = numbers[first[kinds.kind_of_lane(kinds.lane(id))] + kinds.index(id)];
    if (one == kNew) one = count++;
    number.push_back(one);
  }
  std::vector<OpId> originals(count);
  for (OpId id = 0; id < all.ops.size(); ++id) {
    const std::uint32_t lane = kinds.lane(id);
    if (of.example[kinds.kind_of_lane(lane)] == lane) originals[number[id]] = id;
  }
  program.ops.reserve(originals.size());
  program.sources.reserve(2 * originals.size());
  program.dependencies.reserve(2 * originals.size());
  for (const OpId original : originals) {
    Op op = all.ops[original];
    const std::uint32_t end = op.src_begin + op.src_count + op.copy_count;
    const auto begin = static_cast<std::uint32_t>(program.sources.size());
    program.sources.insert(program.sources.end(), all.sources.begin() + op.src_begin,
                           all.sources.begin() + end);
    op.src_begin = begin;
    program.ops.push_back(op);
  }
  add_waits(whole, originals);
}

void OneOfAlike::add_waits(const LaneKinds::Ops& whole, const std::vector<OpId>& originals) {
  std::vector<Awaited> all, of_op;
  landings.first.reserve(originals.size() + 1);
  for (OpId id = 0; id < originals.size(); ++id) {
    check_interruption_at(id);
    of_op.clear();
    whole.awaited.for_each(originals[id], [&](const Awaited& one) {
      of_op.push_back({number[one.op], one.what});
    });
    all.clear();
    add_once(of_op, all);
    Op& op = program.ops[id];
    op.dep_begin = static_cast<std::uint32_t>(program.dependencies.size());
    landings.first.push_back(static_cast<std::uint32_t>(landings.ops.size()));
    for (const Awaited& one : all) {
      if (one.what == Awaited::What::landing) {
        landings.ops.push_back(one.op);
      } else {
        program.dependencies.push_back(one.op);
        awaits_result.push_back(one.what == Awaited::What::result);
      }
    }
    op.dep_count = static_cast<std::uint32_t>(program.dependencies.size()) - op.dep_begin;
  }
  landings.first.push_back(static_cast<std::uint32_t>(landings.ops.size()));
  std::vector<SentData::Read> reads;
  for (OpId id = 0; id < number.size(); ++id) {
    whole.sent.for_each_read(id, [&](OpId one) {
      if (originals[number[one]] == one) reads.push_back({number[id], number[one]});
    });
  }
  sent = SentData(originals.size(), std::move(reads));
}

void OneOfAlike::add_shapes(const LaneKinds::Ops& whole, const LaneKinds& kinds, const Kinds& of) {
  const ShapeNumbers& numbers = whole.shapes.numbers();
  constexpr std::uint32_t kNew = ~std::uint32_t{0};
  std::vector<std::uint32_t> shape_of(numbers.examples().size(), kNew);
  ops_of_shape_.resize(numbers.examples().size());
  shapes.resize(program.ops.size());
  for (OpId id = 0; id < number.size(); ++id) {
    check_interruption_at(id);
    ++ops_of_shape_[numbers.of(id)];
    const std::uint32_t lane = kinds.lane(id);
    const std::uint32_t kind = kinds.kind_of_lane(lane);
    if (of.example[kind] != lane) continue;
    std::uint32_t& shape = shape_of[numbers.of(id)];
    if (shape == kNew) {
      shape = static_cast<std::uint32_t>(examples.size());
      stands_for_.push_back({id, static_cast<std::size_t>(of.lanes[kind])});
      examples.push_back(number[id]);
    }
    shapes[number[id]] = shape;
  }
}

void OneOfAlike::add_resources(const LaneKinds& kinds) {
  for (ResourceId id = 0; id < kinds.resources(); ++id) {
    const std::uint32_t kind = kinds.kind_of_resource(id);
    kind_of_resource_.push_back(kind);
    if (kind == example_.size()) {
      example_.push_back(id);
      counts_.push_back(0);
    }
    ++counts_[kind];
  }
}

/// Of flows that so many lanes start alike. `uses`: scratch, 0 by kind of resources.
FlowList OneOfAlike::of_all(const FlowList& list, std::size_t lanes,
                            std::vector<std::size_t>& uses) const {
  FlowList made = list;
  made.flows.clear();
  made.resources.clear();
  for (const FlowList::Flow& flow : list.flows) {
    for (const ResourceId one : list.resources_of(flow)) ++uses[kind_of_resource_[one]];
    for (const ResourceId one : list.resources_of(flow)) {
      const std::uint32_t kind = kind_of_resource_[one];
      const std::size_t of_kind = lanes * std::exchange(uses[kind], 0);
      CHECK(of_kind % counts_[kind] == 0);
      made.resources.insert(made.resources.end(), of_kind / counts_[kind], example_[kind]);
    }
    made.add(flow.latency_s, flow.bytes, flow.alone);
  }
  return made;
}

std::vector<OpShapes::Shape> OneOfAlike::flows_of_examples(const OpShapes& whole) const {
  std::vector<OpShapes::Shape> all;
  all.reserve(stands_for_.size());
  for (const StandsFor& one : stands_for_)
    all.push_back(whole.shape(whole.numbers().of(one.example)));
  return all;
}

std::vector<OpShapes::Shape> OneOfAlike::flows_of_all(
    const std::vector<OpShapes::Shape>& of_examples) const {
  std::vector<OpShapes::Shape> all;
  all.reserve(of_examples.size());
  std::vector<std::size_t> uses(example_.size(), 0);
  for (std::size_t shape = 0; shape < of_examples.size(); ++shape) {
    const std::size_t lanes = stands_for_[shape].lanes;
    const auto& [begin, reduce] = of_examples[shape];
    OpShapes::Shape& made = all.emplace_back();
    made.begin = of_all(begin, lanes, uses);
    if (!reduce.flows.empty()) made.reduce = of_all(reduce, lanes, uses);
  }
  return all;
}

std::int64_t OneOfAlike::transfers(OpShapes& whole) const {
  std::int64_t all = 0;
  for (const OpId id : whole.numbers().examples()) {
    std::int64_t moved = whole.begin(id).transfers;
    if (whole.reduces_separately(id)) moved += whole.reduce(id).transfers;
    all += ops_of_shape_[whole.numbers().of(id)] * moved;
  }
  return all;
}

}  // namespace espalier
