// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "planner/graph/exact.h"
#include "planner/packing/packing_problem.h"

// Private to the room.

namespace espalier {

/// How often something uses a resource, by resource.
using ResourceLoads = std::map<int, std::int64_t>;
/// Adds what an edge puts on its resources.
void add_loads(const PackingProblem& problem, const PackedEdge& edge, ResourceLoads& loads);

/// A tree or path that carries a share of one demand (of the whole message when there is one).
struct Portion {
  int demand = 0;  ///< 0, 1, ...: shares of one demand add up to 1
  Rational share;
  ResourceLoads loads;
};

/// What all demands get at once, in the problem's unit, when the fullest resource is full.
Rational attained_rate(const PackingProblem& problem, const std::vector<Portion>& portions);

struct WholeWeights {
  std::int64_t units = 1;             ///< that every demand is divided into
  std::vector<std::int64_t> weights;  ///< of the portions, in units
  Rational rate;                      ///< what they attain, as `attained_rate`
};

/// The shares in whole units: exact where that takes no more than 2048, else the nearest numbers
/// for the fewest units that lose no more than a few thousandths.
WholeWeights whole_weights(const PackingProblem& problem, const std::vector<Portion>& portions);

}  // namespace espalier
