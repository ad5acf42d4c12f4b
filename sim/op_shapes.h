// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ir/program.h"
#include "sim/op_flows.h"
#include "sim/op_names.h"

namespace espalier {

/// The same for ops of one shape; of others, mostly another one. Leaves out turns.
std::uint64_t shape_hash(const Program& program, const Op& op);

/// Ops of one shape start the same flows: at one place, on one lane, between the same places, by
/// the same way, as long, in the same turn (OpTurn). So do most of the pieces that an op is cut
/// into.
class ShapeNumbers {
 public:
  ShapeNumbers(const Program& program, const MachineFlows& flows);
  /// Those found of another program. `numbers`: by op; `examples`: the first op of each.
  ShapeNumbers(std::vector<std::uint32_t> numbers, std::vector<OpId> examples)
      : number_(std::move(numbers)), examples_(std::move(examples)) {}

  /// Counted from 0, in order of the first op of each.
  std::uint32_t of(OpId id) const { return number_[id]; }
  const std::vector<std::uint32_t>& by_op() const { return number_; }
  /// Of the shapes of all ops. 0: of another program's.
  std::uint64_t hash() const { return hash_; }
  /// The first op of every shape.
  const std::vector<OpId>& examples() const { return examples_; }
  /// The first shape that differs from this one in nothing but its lane; itself where there is none
  /// before it, or these are those of another program.
  std::uint32_t first_but_for_lane(std::uint32_t shape) const {
    return first_but_for_lane_.empty() ? shape : first_but_for_lane_[shape];
  }

 private:
  std::vector<std::uint32_t> number_;  ///< by op
  std::vector<OpId> examples_;
  std::vector<std::uint32_t> first_but_for_lane_;  ///< by shape, or empty
  std::uint64_t hash_ = 0;
};

/// The flows of all shapes.
class OpShapes final : public OpFlows {
 public:
  struct Shape {
    FlowList begin;
    FlowList reduce;  ///< nothing where its operands are not added up separately
  };

  /// Finds the flows of an op, and puts them where its shape is to be.
  static void fill(OpFlows& flows, OpId id, Shape& made);

  /// Refers to the flows. `numbers`: of the ops whose flows these are.
  OpShapes(MachineFlows& flows, std::shared_ptr<const ShapeNumbers> numbers);

  const FlowList& begin(OpId id) override { return of(id).begin; }
  const FlowList& reduce(OpId id) override { return of(id).reduce; }
  bool reduces_separately(OpId id) const override { return flows_.reduces_separately(id); }
  double bytes_per_s(ResourceId resource) const override { return flows_.bytes_per_s(resource); }
  /// MachineFlows::turn_of
  OpTurn turn_of(const Op& op) const { return flows_.turn_of(op); }

  const ShapeNumbers& numbers() const { return *numbers_; }
  std::shared_ptr<const ShapeNumbers> shared_numbers() const { return numbers_; }
  const Shape& shape(std::uint32_t number) const { return shapes_[number]; }

 private:
  const Shape& of(OpId id) const { return shapes_[numbers_->of(id)]; }

  MachineFlows& flows_;
  const std::shared_ptr<const ShapeNumbers> numbers_;
  std::vector<Shape> shapes_;
};

/// Flows that were found before, by shape.
class KnownFlows final : public OpFlows {
 public:
  /// Refers to its arguments. `found_by`: whose machine counts what they carry.
  KnownFlows(const ShapeNumbers& numbers, const std::vector<OpShapes::Shape>& shapes,
             MachineFlows& found_by)
      : numbers_(numbers), shapes_(shapes), found_by_(found_by) {}

  const FlowList& begin(OpId id) override { return found_by_.again(of(id).begin); }
  const FlowList& reduce(OpId id) override { return found_by_.again(of(id).reduce); }
  bool reduces_separately(OpId id) const override { return !of(id).reduce.flows.empty(); }
  double bytes_per_s(ResourceId resource) const override { return found_by_.bytes_per_s(resource); }

 private:
  const OpShapes::Shape& of(OpId id) const { return shapes_[numbers_.of(id)]; }

  const ShapeNumbers& numbers_;
  const std::vector<OpShapes::Shape>& shapes_;
  MachineFlows& found_by_;
};

/// The flows of a simulation, found once for every shape: when its first op begins.
class ShapedFlows final : public OpFlows {
 public:
  /// Refers to its arguments.
  ShapedFlows(const ShapeNumbers& numbers, MachineFlows& flows)
      : numbers_(numbers), flows_(flows), begin_(numbers.examples().size()) {}

  const FlowList& begin(OpId id) override {
    FlowList& list = begin_[numbers_.of(id)];
    return list.flows.empty() ? list = flows_.begin(id) : flows_.again(list);
  }
  const FlowList& reduce(OpId id) override {
    reduce_.resize(begin_.size());
    FlowList& list = reduce_[numbers_.of(id)];
    return list.flows.empty() ? list = flows_.reduce(id) : flows_.again(list);
  }
  bool reduces_separately(OpId id) const override { return flows_.reduces_separately(id); }
  double bytes_per_s(ResourceId resource) const override { return flows_.bytes_per_s(resource); }

 private:
  const ShapeNumbers& numbers_;
  MachineFlows& flows_;
  std::vector<FlowList> begin_;   ///< by shape; without flows: not asked for yet
  std::vector<FlowList> reduce_;  ///< likewise; empty until one is asked for
};

/// The flows of a simulation of all groups of a folded program, found once for every shape and
/// group. Groups differ in where they are on the machine, and in nothing else.
class FlowsOfGroups final : public OpFlows {
 public:
  /// Refers to its arguments. `of_first`: of the first group's ops, which are asked for their turns
  /// alone.
  FlowsOfGroups(const Program& program, const OpNames& names, const BlockMap& blocks,
                const Profile& profile, double message_bytes, MachineResources& machine,
                const MachineFlows& of_first);

  const FlowList& begin(OpId id) override { return found(begin_, id, &MachineFlows::begin); }
  const FlowList& reduce(OpId id) override {
    reduce_.resize(begin_.size());
    return found(reduce_, id, &MachineFlows::reduce);
  }
  bool reduces_separately(OpId id) const override { return flows_.reduces_separately(number(id)); }
  double bytes_per_s(ResourceId resource) const override { return flows_.bytes_per_s(resource); }

 private:
  /// That of an op of its shape and group among the examples.
  OpId number(OpId id) const {
    const OpNames::Alike alike = names_.alike(id);
    return names_.of_group(numbers_.of(alike.op), alike.group);
  }
  const FlowList& found(std::vector<FlowList>& lists, OpId id,
                        const FlowList& (MachineFlows::*find)(OpId)) {
    const OpId example = number(id);
    FlowList& list = lists[example];
    return list.flows.empty() ? list = (flows_.*find)(example) : flows_.again(list);
  }

  const OpNames& names_;
  const ShapeNumbers numbers_;    ///< of the first group's ops
  const Program examples_;        ///< of every shape the op of every group
  MachineFlows flows_;            ///< of these
  std::vector<FlowList> begin_;   ///< by example; without flows: not asked for yet
  std::vector<FlowList> reduce_;  ///< likewise; empty until one is asked for
};

}  // namespace espalier
