// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "planner/forest.h"

namespace espalier {

enum class TreeCount : std::uint8_t { best, one };  ///< as many as the optimum takes, or one

/// The best trees for allreduce under the router's profile and link scope, on any machine: on
/// direct links they attain the bound of Nash-Williams and Tutte, through switches that of the
/// linear program (see spanning_trees.h). Data goes up each tree and down the same tree, so that
/// both directions of its links work at once. Roots are the trees' centres.
///
/// Weights are exact where few units of the message allow it, as on DGX-1; where they would take
/// very many, the nearest that lose little, some thousandths usually.
///
/// With TreeCount::one, a good single tree, on direct links the best: the baseline of the paper on
/// the spanning tree polytope (see single_tree.h).
///
/// Throws Error{unsupported} naming a pair of ranks that no links in scope join.
Forest pack_allreduce(const Router& router, const Placement& placement,
                      TreeCount trees = TreeCount::best);

}  // namespace espalier
