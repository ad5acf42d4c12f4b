// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "sim/op_flows.h"
#include "sim/op_names.h"
#include "sim/op_shapes.h"

namespace espalier {

/// The flows of a simulation's ops: found once for each shape, where shapes have so many ops that
/// it pays to keep them.
class SimulatedFlows {
 public:
  /// Refers to its arguments. `known`: the shapes, or null.
  SimulatedFlows(const Program& program, const ShapeNumbers* known, MachineFlows& of_ops)
      : of_ops_(&of_ops) {
    constexpr std::size_t kOpsOfShape = 4;
    if (known == nullptr) known = &found_.emplace(program, of_ops);
    const bool repeats = kOpsOfShape * known->examples().size() <= program.ops.size();
    if (repeats) of_shapes_.emplace(*known, of_ops);
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
  std::optional<ShapeNumbers> found_;
  std::optional<ShapedFlows> of_shapes_;
};

}  // namespace espalier
