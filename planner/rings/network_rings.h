// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "planner/ring_search.h"

// Rings over several machines. Private to the room.

namespace espalier {

/// Rings through all islands in turn: as many as the island with the most rings or network ports
/// has. Each island contributes its own rings (of those that it has fewer of, some several times),
/// cut open where this loads its ports most evenly; data goes on from the last rank of one island
/// to the first of the next. \pre every island has a ring
std::vector<Ring> join_rings(const Router& router, const Placement& placement,
                             const std::vector<std::vector<Ring>>& rings_by_island, bool both_ways);

}  // namespace espalier
