// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "planner/graph/cut_graph.h"

// Private to the room.

namespace espalier {

/// Tables over all subsets of a few sites (ranks, then relays) that only direct links join. Bit s
/// of an index: site s.
class SubsetCapacities {
 public:
  static constexpr int kMaxSites = 10;

  /// \pre `graph` is direct and has at most kMaxSites sites.
  explicit SubsetCapacities(const CutGraph& graph);

  Capacity leaving(unsigned set) const { return leaving_[set]; }
  Capacity around(unsigned set) const { return around_[set]; }

  /// Of the partitions of all sites into parts with a rank each, the one with the least
  /// around / (parts - 1), the sum of `around` over its parts: the bound of Nash-Williams and
  /// Tutte. \pre two ranks or more
  std::vector<unsigned> weakest_partition() const;

 private:
  int sites_;
  unsigned rank_mask_;
  std::vector<Capacity> leaving_, around_;
};

}  // namespace espalier
