// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "planner/forest.h"
#include "planner/packing/packing_problem.h"

// One tree of a packing for allreduce, without a direction. Private to the room.

namespace espalier {

/// An edge for every rank and every relay joined but one.
using SpanningTree = std::vector<PackedEdge>;

/// How often a tree uses each resource, counted as the resource counts a use.
using Loads = std::vector<std::int64_t>;
Loads loads_of(const PackingProblem& problem, const SpanningTree& tree);

/// Multiplicative prices of a load, by which trees avoid what the ones before them use: at first
/// the narrower a resource, the dearer; and then raised by what a tree loads, relative to its
/// fullest resource.
std::vector<double> prices_of_empty(const PackingProblem& problem);
void raise_prices(const PackingProblem& problem, const Loads& loads, std::vector<double>& prices);

/// The rank or relay from which the farthest is nearest, counted in edges, and how far that is.
struct TreeCentre {
  int rank = 0;
  int height = 0;
};
TreeCentre centre_of(const SpanningTree& tree);

/// The tree hung up at one of its ranks or relays.
PlannedTree hung_at(const PackingProblem& problem, const SpanningTree& tree, int root,
                    std::int64_t weight);
/// The same at its centre.
PlannedTree hung_at_centre(const PackingProblem& problem, const SpanningTree& tree,
                           std::int64_t weight);

}  // namespace espalier
