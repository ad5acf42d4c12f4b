// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "planner/graph/exact.h"
#include "planner/graph/work_budget.h"
#include "planner/packing/spanning_tree.h"
#include "planner/packing/whole_weights.h"

// Spanning trees for allreduce on any machine. Private to the room.
//
// A byte of the message goes up a tree over the ranks, combined on the way, and its result down the
// same tree: every use of a link by an edge of the tree loads both of its directions once. A
// packing gives trees weights that add up to the rate without loading any link beyond its capacity.
// Edges may pass switches, which only pass on.
//
// No schedule is faster than the best packing, although up and down one tree looks like a
// restriction. Give every use of a link, in either direction, a price p >= 0. Messages between
// ranks cost at least the distance d of the two. A byte needs messages that connect the ranks at
// least twice over: of any partition into k parts at least 2(k-1) messages cross (see bounds.cpp),
// so the messages contain two disjoint spanning trees (Nash-Williams, Tutte 1961) and cost at least
// 2 MST(d). What all links can carry in a second costs at most 2 * sum of capacity * p. Hence
//   algbw <= sum of capacity * p / MST(d)  for any prices,
// and the least right side over all p is, by duality of linear programs, the best packing.
// (Wolfson and Segall, SIAM J. Computing 20(3), 1991: gossiping costs 2 MST.)
//
// With relays the trees are Steiner trees: each joins some of the relays as well. The cheapest one
// is the cheapest over all sets of relays, which are tried where they are few. The argument above
// does not hold then, since relays need not take part twice: bounds go other ways (see bounds.cpp).

namespace espalier {

/// Weights, rate and limit in the problem's unit.
struct TreePacking {
  std::vector<SpanningTree> trees;
  std::vector<Rational> weights;
  Rational rate;  ///< sum of the weights
  /// Of one load, by resource; the cheapest tree costs 1. Empty, and nothing proved, where the time
  /// ran out on a large machine (see TimeLimit).
  std::vector<Rational> prices;
  /// What the prices prove: sum of capacity * price. Equal to `rate` on machines of up to some
  /// hundred links; a little above on larger ones, which are not solved exactly. With many relays
  /// (see cheapest_tree.h) it may be too low.
  Rational limit;
  /// False: the search ended at its budget. `rate` may be below the best, `limit` above.
  bool is_complete = true;
};

/// What each tree takes of the message, and puts on resources.
std::vector<Portion> portions_of(const PackingProblem& problem, const TreePacking& packing);

/// The best packing by column generation (see column_generation.h), recovered and proved in exact
/// arithmetic. `limit` is a proof and the weights overload nothing however the search went.
/// `max_work`: steps of the search, see WorkBudget. \pre at least two ranks, all connected.
TreePacking pack_spanning_trees(const PackingProblem& problem,
                                std::int64_t max_work = kMaxPackingWork);

/// Whether a few trees, each of which avoids what the ones before it use, carry `rate` already, in
/// the problem's unit: then no prices prove less. Where all ranks are alike they mostly do. False
/// says nothing. \pre as above
bool carries_at_once(const PackingProblem& problem, const Rational& rate,
                     std::int64_t max_work = kMaxPackingWork);

}  // namespace espalier
