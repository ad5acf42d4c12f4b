// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "planner/ring_search.h"

// One ring along routes of any kind. Private to the room.

namespace espalier {

struct RoutedRing {
  std::vector<int> order;  ///< of the ranks asked for; empty when there is none
  std::string why_not;     ///< "no route joins gpu0 and gpu5"
};

/// A ring through `ranks` whose busiest link is least loaded, of equals the one of fewest hops,
/// used one way: GPUs on PCIe send and receive at once over the same link. Exact up to
/// kExactRingRanks ranks; up to kMaxRingRanks the better of the given order and of
/// always going to the nearest rank next; above, the given order. \pre two ranks or more
RoutedRing routed_ring(const Router& router, const Placement& placement,
                       const std::vector<int>& ranks);

}  // namespace espalier
