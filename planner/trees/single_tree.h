// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/packing/spanning_trees.h"

// Private to the room.

namespace espalier {

/// A tree that carries much by itself, as a packing without prices. The most possible on direct
/// links, where a cheapest tree has the widest narrowest link, too (its price only grows as links
/// get narrower). Through switches, where loads of edges add up, a good one: the best of a chain in
/// the order of the machine's nodes, the trees of the best packing and trees that avoid what the
/// ones before them loaded most, with edges exchanged while the fullest link gets less full.
/// \pre at least two ranks, all connected
TreePacking good_single_tree(const PackingProblem& problem);

}  // namespace espalier
