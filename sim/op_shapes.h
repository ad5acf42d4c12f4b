// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/program.h"
#include "sim/op_flows.h"

namespace espalier {

/// Ops of one shape start the same flows: at one place, on one lane, between the same places, by
/// the same way, as long, in the same turn (OpTurn). So do most of the pieces that an op is cut
/// into.
class OpShapes final : public OpFlows {
 public:
  struct Shape {
    OpId example = 0;
    std::uint32_t ops = 0;
    FlowList begin;
    FlowList reduce;  ///< nothing where its operands are not added up separately
  };

  /// Refers to its arguments.
  OpShapes(const Program& program, MachineFlows& flows);

  const FlowList& begin(OpId id) override { return of(id).begin; }
  const FlowList& reduce(OpId id) override { return of(id).reduce; }
  bool reduces_separately(OpId id) const override { return flows_.reduces_separately(id); }
  double bytes_per_s(ResourceId resource) const override { return flows_.bytes_per_s(resource); }

  const Shape& of(OpId id) const { return shapes_[number_[id]]; }
  /// By op, an index into `all`.
  const std::vector<std::uint32_t>& numbers() const { return number_; }
  const std::vector<Shape>& all() const { return shapes_; }

 private:
  std::uint32_t number_of(OpId id);
  bool is_same(const Op& a, const Op& b) const;
  void grow();

  const Program& program_;
  MachineFlows& flows_;
  std::vector<std::uint32_t> number_;
  std::vector<Shape> shapes_;
  std::vector<std::uint32_t> table_;  ///< by hash: indices plus one, 0 of nothing
};

/// The flows of a simulation, found once for every shape: when its first op begins.
class ShapedFlows final : public OpFlows {
 public:
  /// Refers to its arguments.
  ShapedFlows(const OpShapes& shapes, MachineFlows& flows)
      : shapes_(shapes), flows_(flows), begin_(shapes.all().size()), reduce_(begin_.size()) {}

  const FlowList& begin(OpId id) override {
    FlowList& list = begin_[shapes_.numbers()[id]];
    return list.flows.empty() ? list = flows_.begin(id) : flows_.again(list);
  }
  const FlowList& reduce(OpId id) override {
    FlowList& list = reduce_[shapes_.numbers()[id]];
    return list.flows.empty() ? list = flows_.reduce(id) : flows_.again(list);
  }
  bool reduces_separately(OpId id) const override { return flows_.reduces_separately(id); }
  double bytes_per_s(ResourceId resource) const override { return flows_.bytes_per_s(resource); }

 private:
  const OpShapes& shapes_;
  MachineFlows& flows_;
  std::vector<FlowList> begin_;  ///< by shape; without flows: not asked for yet
  std::vector<FlowList> reduce_;
};

}  // namespace espalier
