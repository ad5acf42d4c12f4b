// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "planner/graph/fabric_links.h"
#include "planner/ring_search.h"

// Rings that share no unit of a fabric link. Private to the room.

namespace espalier {

/// How a ring may be laid.
struct RingRules {
  /// Data goes round both ways, so a ring takes both directions of its links.
  bool both_ways = true;
  /// A hop between ranks without a direct link may pass through a third rank of the ring.
  bool relays = false;
};

/// As many rings through all ranks as can be found. Exact up to kExactRingRanks ranks as long as
/// the search stays within its budget, which it does on every subset of a DGX-1 and of eight GPUs
/// joined all to all. Beyond: rings are laid one after the other, each with its own budget, so that
/// there may be fewer than possible. \pre three ranks or more
std::vector<Ring> pack_rings(const FabricLinks& links, const RingRules& rules);

}  // namespace espalier
