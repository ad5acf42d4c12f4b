// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/program.h"
#include "run/target.h"
#include "sim/block_map.h"
#include "sim/lockstep.h"
#include "sim/machine_resources.h"
#include "sim/op_costs.h"
#include "sim/op_flows.h"
#include "sim/op_shapes.h"
#include "topologies/profile.h"

namespace espalier {

/// Which shapes of ops cost the same, apart from what they use: by shape, equal numbers for equal
/// flows. Hashes of 64 bits.
using AlikeCosts = std::vector<std::uint64_t>;

/// For one message: by what they cost.
AlikeCosts costs_alike(OpShapes& shapes);

/// What the flows of a program's ops follow from on a machine, beside the size of the message.
/// Those of equal inputs cost the same for every size.
class CostInputs {
 public:
  /// Nothing where the size decides more than the lengths of flows and latencies: memories are
  /// faster for small messages, switches and blocks that drift make other flows of them, or pieces
  /// of an op lose differently in lockstep. Nor of folded programs with a rotation. Which of the
  /// two does not depend on the size. \pre the message has bytes
  static std::optional<CostInputs> find(const Program& program, const Target& target,
                                        const BlockMap& blocks, OpShapes& shapes,
                                        MachineResources& machine);

  const AlikeCosts& by_shape() const { return by_shape_; }
  /// The turn of ops of a shape, in a message of which a unit is so long.
  OpTurn turn(std::uint32_t shape, const Op& op, double bytes_per_unit) const;

 private:
  CostInputs() = default;

  AlikeCosts by_shape_;
  std::vector<OpTurn> turns_;           ///< by shape, without lockstep
  std::vector<Lockstep::Reads> reads_;  ///< by shape
  double lockstep_bytes_ = 0;           ///< Protocol::lockstep_bytes
};

}  // namespace espalier
