// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "planner/trees/branchings.h"

namespace espalier {

/// Makes trees lower that together use no arc more often than `trees[from * ranks + to]`, and still
/// don't: a rank is hung below another one, over an arc that has trees left, or two trees exchange
/// the arcs by which they reach a rank. Both are done as long as the sum of 2^depth, over all ranks
/// and trees, gets less: one tall tree weighs more than some that are a little higher, because the
/// last of a pipeline to fill decides. Weights of a root still add up to the same; trees of a
/// larger weight than one may be cut, and alike ones are merged. Private to this room.
std::vector<Branching> lower_trees(int ranks, const std::vector<std::int64_t>& trees,
                                   const std::vector<Branching>& packed);

}  // namespace espalier
