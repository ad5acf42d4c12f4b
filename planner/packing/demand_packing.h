// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "planner/graph/exact.h"
#include "planner/graph/work_budget.h"
#include "planner/packing/demands.h"
#include "planner/packing/packing_problem.h"
#include "planner/packing/whole_weights.h"

// Paths for collectives that neither copy nor combine (gather, scatter, alltoall, sendrecv), and
// trees for those whose data goes one way and is copied or combined at the ranks (broadcast,
// reduce, allgather, reducescatter). Private to the room.
//
// Every demand, from one rank to another or to all of them, gets the same bandwidth, as much as
// possible: for paths maximum concurrent flow (Shahrokhi and Matula, J. ACM 37(2), 1990), for trees
// the packing of arborescences (Edmonds 1973), where directions may share a link. What serves a
// demand is a set of paths or trees with weights; ranks on the way store and forward, switches pass
// on. A reduction is a broadcast turned round.
//
// No schedule is faster. Give every use of a resource (a direction of a link, a half-duplex link, a
// medium) a price p >= 0. A byte of demand k moves from its rank over links to the other, or to
// everybody, which takes messages that contain a spanning tree away from the rank: it costs at
// least d_k, the distance of the two or the cheapest such tree. What all resources can carry in a
// second costs at most the sum of capacity * p. Hence, with every demand at rate r,
//   r <= sum of capacity * p / sum of d_k  for any prices,
// and the least right side over all p is, by duality of linear programs, the best packing. For
// gather and scatter the best prices are those of a cut; for many pairs at once they need not be.

namespace espalier {

/// Trees are packed by prices, and bounded by them, for up to this many ranks: beyond, it takes
/// long. (Where no directions share a link, flows do better: see tree_rate.h.)
inline constexpr int kMaxPricedTreeRanks = 16;

/// A path or tree that carries a share of a demand.
struct Carrier {
  int demand = 0;                 ///< index
  std::vector<PackedEdge> edges;  ///< from rank to rank, parents first
  Rational share;                 ///< of the demand
};

std::vector<Portion> portions_of(const PackingProblem& problem,
                                 const std::vector<Carrier>& carriers);

/// Rates are those of every demand, in the problem's unit.
struct DemandPacking {
  std::vector<Carrier> carriers;  ///< by demand; shares of each add up to 1
  Rational rate;
  std::vector<Rational> prices;  ///< by resource; what all demands cost adds up to 1
  /// What the prices prove: sum of capacity * price. Equal to `rate`
  /// full that they are not solved exactly, or the search ended early.
  Rational limit;
  /// False: the search ended at its budget. `rate` may be below the best, `limit` above.
  bool is_complete = true;
};

/// The best packing by column generation (see column_generation.h), recovered and proved in exact
/// arithmetic. `limit` is a proof and `rate` is attained however the search went. `max_work`: steps
/// of the search, see WorkBudget. \pre the problem is one_way and connected; there is a demand; no
/// relays where demands are for every rank.
DemandPacking pack_demands(const PackingProblem& problem, const std::vector<Demand>& demands,
                           std::int64_t max_work = kMaxPackingWork);

}  // namespace espalier
