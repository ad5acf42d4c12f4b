// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "planner/packing/spanning_trees.h"

// Chains and stars over the ranks: trees that take no search. Private to the room.

namespace espalier {

/// Over the ranks in the order given, by the cheapest ways (`prices` of a load, by resource);
/// nothing where two that follow each other are not joined.
std::optional<SpanningTree> chain(const PackingProblem& problem, const std::vector<int>& order,
                                  const std::vector<double>& prices);

/// The ranks in the order of the machine's nodes.
std::vector<int> node_order(const PackingProblem& problem);

/// Chains that go from host to host in the order of the machine's nodes, each beginning at another
/// GPU of every host: they enter and leave hosts by different NICs, as the rings of libraries do,
/// over links that the chains before them load least.
/// At most sixteen; none where GPUs that follow each other are not joined. \pre a rank
std::vector<SpanningTree> staggered_chains(const PackingProblem& problem, const Topology& topology);

/// By rank: the star around it, of its links to all others. None where not all ranks have a link to
/// each other.
std::vector<SpanningTree> stars(const PackingProblem& problem);

/// The trees with one weight, as a packing without prices. \pre there is one
TreePacking evenly(const PackingProblem& problem, std::vector<SpanningTree> trees);

/// Stars with one weight, with the prices that prove that nothing is better, where that is so: on
/// links that are all alike, each is part of the stars of its two ends.
std::optional<TreePacking> best_stars(const PackingProblem& problem);

}  // namespace espalier
