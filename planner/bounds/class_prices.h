// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/graph/exact.h"
#include "planner/graph/work_budget.h"
#include "planner/packing/packing_problem.h"

// The bound of tree packing on machines of many alike ranks: a quotient. Private to the room.
//
// Any prices of links prove a limit on allreduce (see spanning_trees.h), and the least such limit
// is the optimum. Averaging prices over the automorphisms of the machine keeps what all links are
// paid and makes no tree cheaper than the cheapest was on average, so prices that are alike on
// alike links prove as much as any. So the linear program needs one price, and one capacity, for
// every class of alike links.
//
// Classes are found by colour refinement, which is fast and never separates links that an
// automorphism exchanges: their prices prove no more than the best, and as much where classes are
// no larger than orbits. Whatever the classes, the prices that come of them are checked in exact
// numbers against the cheapest tree of the whole machine.

namespace espalier {

/// By resource: which class of alike ones it is in. Classes are numbered 0, 1, ...
struct ResourceClasses {
  std::vector<int> of_resource;
  int count = 0;
};

/// \pre no relays
ResourceClasses resource_classes(const PackingProblem& problem);

/// Prices, one for each class, and the limit that they prove.
struct ClassPrices {
  std::vector<Rational> prices;  ///< of one load, by resource; the cheapest tree costs 1
  Rational limit;                ///< sum of capacity * price, in the problem's unit
  bool is_complete = true;       ///< false: the search ended at its budget
};

/// The best such prices for allreduce, by column generation. Nothing where the machine is not
/// symmetric: fewer than two resources share a class on average, or there are more classes than
/// kMaxExactEquations. `max_work`: steps of the search, see
/// WorkBudget. \pre both_ways; no relays; at least two ranks, all connected
std::optional<ClassPrices> price_classes(const PackingProblem& problem,
                                         const ResourceClasses& classes,
                                         std::int64_t max_work = kMaxPackingWork);

}  // namespace espalier
