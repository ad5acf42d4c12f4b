// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/packing/spanning_trees.h"

// Private to the room.

namespace espalier {

/// A single tree with a high rate, as a packing without prices. It is optimal on direct links,
/// where a cheapest tree also maximises the narrowest link (a link's price only grows as it gets
/// narrower). Through switches, where loads of edges add up, a good one: the best of a chain in
/// the order of the machine's nodes, the trees of the best packing and trees that avoid what the
/// ones before them loaded most, with edges exchanged while the fullest link gets less full; the
/// first of these where the time is up.
/// \pre at least two ranks, all connected
TreePacking good_single_tree(const PackingProblem& problem);

}  // namespace espalier
