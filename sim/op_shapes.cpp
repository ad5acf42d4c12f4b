// SPDX-License-Identifier: Apache-2.0
#include "sim/op_shapes.h"

#include <bit>
#include <span>
#include <utility>

#include "core/hash.h"
#include "core/hash_numbers.h"
#include "core/interruption.h"
#include "ir/unfold.h"

namespace espalier {
namespace {

bool same_places(std::span<const Operand> a, std::span<const Operand> b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].place != b[i].place) return false;
  }
  return true;
}

/// Whether two ops have one shape, on whatever lanes.
bool is_same_but_for_lane(const Program& program, const MachineFlows& flows, const Op& a,
                          const Op& b) {
  if (a.kind != b.kind || a.at != b.at) return false;
  if (a.kind != OpKind::combine) return program.duration_s(a) == program.duration_s(b);
  return a.length == b.length && a.via == b.via && a.in_switch == b.in_switch &&
         a.dst.place == b.dst.place && a.src_count == b.src_count && a.copy_count == b.copy_count &&
         same_places(program.sources_of(a), program.sources_of(b)) &&
         same_places(program.copies_of(a), program.copies_of(b)) &&
         flows.turn_of(a) == flows.turn_of(b);
}

/// Whether they have one shape.
bool is_same(const Program& program, const MachineFlows& flows, const Op& a, const Op& b) {
  return a.lane == b.lane && is_same_but_for_lane(program, flows, a, b);
}

std::uint64_t hash_but_for_lane(const Program& program, const Op& op) {
  const auto bits = [](auto value) { return static_cast<std::uint64_t>(value); };
  std::uint64_t hash = mix64(bits(op.at) << 3 ^ bits(op.kind));
  if (op.kind != OpKind::combine) {
    return mix64(hash ^ std::bit_cast<std::uint64_t>(program.duration_s(op)));
  }
  hash = mix64(hash ^ bits(op.length) << 24 ^ bits(op.dst.place));
  for (const Operand& source : program.sources_of(op)) hash = mix64(hash ^ bits(source.place));
  return hash;
}

}  // namespace

std::uint64_t shape_hash(const Program& program, const Op& op) {
  return mix64(hash_but_for_lane(program, op) ^ static_cast<std::uint64_t>(op.lane) << 20);
}

ShapeNumbers::ShapeNumbers(const Program& program, const MachineFlows& flows)
    : number_(program.ops.size()) {
  HashNumbers numbers;
  const auto number_of = [&](const Op& op) {
    return numbers.number(shape_hash(program, op), [&](std::uint32_t known) {
      return is_same(program, flows, program.ops[examples_[known]], op);
    });
  };
  for (OpId id = 0; id < program.ops.size(); ++id) {
    check_interruption_at(id);
    // Pieces of an op stand one after the other.
    const bool is_next = id > 0 && is_same(program, flows, program.ops[id - 1], program.ops[id]);
    number_[id] = is_next ? number_[id - 1] : number_of(program.ops[id]);
    if (number_[id] == examples_.size()) examples_.push_back(id);
  }
  for (const std::uint32_t number : number_) hash_ = mix64(hash_ ^ number);
  std::vector<std::uint32_t> first;  // shape of those that are the same but for their lanes
  HashNumbers on_any_lane;
  for (std::uint32_t shape = 0; shape < examples_.size(); ++shape) {
    const Op& op = program.ops[examples_[shape]];
    const std::uint32_t number =
        on_any_lane.number(hash_but_for_lane(program, op), [&](std::uint32_t known) {
          return is_same_but_for_lane(program, flows, program.ops[examples_[first[known]]], op);
        });
    if (number == first.size()) first.push_back(shape);
    first_but_for_lane_.push_back(first[number]);
  }
}

namespace {

/// The ops of all groups that are like some of the first group's, one after the other.
Program all_groups_of(const Program& program, const std::vector<OpId>& examples) {
  Program some = program;
  some.ops.clear();
  for (const OpId id : examples) {
    some.ops.push_back(program.ops[id]);
    some.ops.back().dep_count = 0;
  }
  return unfold(some);
}

std::vector<OpTurn> turns_of(const Program& program, const MachineFlows& flows,
                             const std::vector<OpId>& examples) {
  std::vector<OpTurn> turns;
  for (const OpId id : examples) turns.push_back(flows.turn_of(program.ops[id]));
  return turns;
}

}  // namespace

FlowsOfGroups::FlowsOfGroups(const Program& program, const OpNames& names, const BlockMap& blocks,
                             const Profile& profile, double message_bytes,
                             MachineResources& machine, const MachineFlows& of_first)
    : names_(names),
      numbers_(program, of_first),
      examples_(all_groups_of(program, numbers_.examples())),
      flows_(examples_, blocks, profile, message_bytes, machine,
             turns_of(program, of_first, numbers_.examples()), program.fold.groups),
      begin_(examples_.ops.size()) {}

void OpShapes::fill(OpFlows& flows, OpId id, Shape& made) {
  made.begin = flows.begin(id);
  if (flows.reduces_separately(id)) made.reduce = flows.reduce(id);
}

OpShapes::OpShapes(MachineFlows& flows, std::shared_ptr<const ShapeNumbers> numbers)
    : flows_(flows), numbers_(std::move(numbers)) {
  shapes_.reserve(numbers_->examples().size());
  for (const OpId id : numbers_->examples()) {
    check_interruption_at(id);
    Shape& made = shapes_.emplace_back();
    const std::uint32_t known = numbers_->first_but_for_lane(numbers_->of(id));
    const bool is_first = numbers_->of(id) == known;
    if (is_first ||
        !flows_.begin_on_lane(id, numbers_->examples()[known], shapes_[known].begin, made.begin)) {
      fill(flows_, id, made);
    }
  }
}

}  // namespace espalier
