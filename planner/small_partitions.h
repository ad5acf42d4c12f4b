// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "planner/cut_graph.h"

// Private to the room.

namespace espalier {

/// Tables over all subsets of a few ranks that only direct links join. Bit r of an index: rank r.
class SubsetCapacities {
 public:
  static constexpr int kMostRanks = 10;

  /// \pre `graph` is direct and has at most kMostRanks ranks.
  explicit SubsetCapacities(const CutGraph& graph);

  Capacity leaving(unsigned set) const { return leaving_[set]; }
  Capacity around(unsigned set) const { return around_[set]; }

  /// The partition with the least around / (parts - 1), the sum of `around` over its parts: the
  /// bound of Nash-Williams and Tutte. \pre two ranks or more
  std::vector<unsigned> weakest_partition() const;

 private:
  int ranks_;
  std::vector<Capacity> leaving_, around_;
};

}  // namespace espalier
