// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "planner/packing/spanning_trees.h"

// Trees of one weight. Private to the room.

namespace espalier {

/// On a machine of direct links a packing of rate p/q has p trees of weight 1/q each in links cut
/// into capacity * q copies (Nash-Williams, Tutte 1961). Trees of one weight share links evenly,
/// whatever shares them out. Keeps as many of the packing's trees as it can and completes the rest
/// by exchanges along shortest augmenting paths in the union of the
/// forests' graphic matroids (Edmonds 1968). Identical trees are merged.
///
/// Nothing when edges pass switches, when there are relays, when it would take more than
/// `max_trees`, or when the exchanges take too long.
std::optional<TreePacking> equal_trees(const PackingProblem& problem, const TreePacking& packing,
                                       std::int64_t max_trees);

}  // namespace espalier
