// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "planner/forest.h"
#include "planner/graph/exact.h"
#include "planner/trees/tree_rate.h"

// Private to the room.

namespace espalier {

/// What each of the placement's relays is to the trees of a collective whose data goes one way, so
/// that the rate is as high as any such choice makes it. To find the best trees that may or may not
/// pass each relay is NP-hard (Steiner trees); with roles fixed it is Edmonds' problem and solved
/// exactly, so every choice is attainable. All choices are compared for up to kMaxComparedRelays;
/// beyond, relays change roles one by one as long as that helps.
struct RelayPlan {
  std::vector<RelayRole> roles;
  Rational bytes_per_s = 0;  ///< per unit of supply; 0: not connected
};
inline constexpr std::size_t kMaxComparedRelays = 6;

/// `supply`: of the ranks. The plan uses no relay that adds nothing.
RelayPlan choose_roles(const Router& router, const Placement& placement, const Supply& supply,
                       MediaUse media, int root);

/// Trees over the vertices of `graph`, whose paths may pass relays, become trees over sites. Each
/// relay is there once at most: what has reached it can be copied there. Those that nothing goes on
/// from are left out.
void make_relays_sites(std::vector<PlannedTree>& trees, const CapacityGraph& graph,
                       const Placement& placement);

}  // namespace espalier
