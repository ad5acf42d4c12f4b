// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "topologies/placement.h"

namespace espalier {

/// How the GPU fabric connects two ranks: by a direct link, through fabric switches only,
/// or not at all. A path through another GPU does not count: NVLink does not forward.
enum class FabricJoint : std::uint8_t { none, direct, switched };
FabricJoint fabric_joint(const Router& router, NodeId a, NodeId b);

/// The direct links between ranks, counted in units: as many as the bundle has links as wide as the
/// narrowest of them all. A double NVLink beside single ones has two.
class FabricLinks {
 public:
  /// Of these ranks of the placement, which are numbered 0, 1, ... here.
  FabricLinks(const Router& router, const Placement& placement, const std::vector<int>& ranks);

  int ranks() const { return ranks_; }
  int units(int a, int b) const { return units_[index(a, b)]; }
  /// Of all links of a rank.
  int degree(int rank) const;
  /// GB/s of a unit in one direction; 0 without any link.
  double unit_gbps() const { return unit_gbps_; }

 private:
  std::size_t index(int a, int b) const {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(ranks_) +
           static_cast<std::size_t>(b);
  }
  int ranks_;
  double unit_gbps_ = 0;
  std::vector<int> units_;  ///< symmetric, ranks x ranks
};

}  // namespace espalier
