// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "sim/op_flows.h"
#include "sim/op_names.h"
#include "sim/op_shapes.h"

namespace espalier {

/// The flows of a simulation's ops: found once for each shape, where shapes have so many ops that
/// it pays to keep them.
class SimulatedFlows {
 public:
  /// Refers to the flows.
  SimulatedFlows(std::shared_ptr<const ShapeNumbers> shapes, MachineFlows& of_ops)
      : of_ops_(&of_ops), shapes_(std::move(shapes)) {
    constexpr std::size_t kOpsOfShape = 4;
    const bool repeats = kOpsOfShape * shapes_->examples().size() <= shapes_->by_op().size();
    if (repeats) of_shapes_.emplace(*shapes_, of_ops);
  }

  /// Of all groups. Refers to its arguments.
  SimulatedFlows(const Program& program, const OpNames& names, const BlockMap& blocks,
                 const Profile& profile, double message_bytes, MachineResources& machine,
                 const MachineFlows& of_first) {
    of_groups_.emplace(program, names, blocks, profile, message_bytes, machine, of_first);
  }

  OpFlows& get() {
    if (of_groups_) return *of_groups_;
    return of_shapes_ ? static_cast<OpFlows&>(*of_shapes_) : *of_ops_;
  }

 private:
  MachineFlows* of_ops_ = nullptr;
  std::optional<FlowsOfGroups> of_groups_;
  std::shared_ptr<const ShapeNumbers> shapes_;
  std::optional<ShapedFlows> of_shapes_;
};

}  // namespace espalier
