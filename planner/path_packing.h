// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/collective.h"
#include "planner/exact.h"
#include "planner/packing_problem.h"
#include "planner/whole_weights.h"

// Paths for collectives that neither copy nor combine: gather, scatter, alltoall, sendrecv. Private
// to the room.
//
// Every demand, from one rank to another, wants the same bandwidth, as much as possible: maximum
// concurrent flow (Shahrokhi and Matula, J. ACM 37(2), 1990). A flow is a set of paths with
// weights; ranks on the way store and forward, switches pass on.
//
// No schedule is faster. Give every use of a resource (a direction of a link, a half-duplex link, a
// medium) a price p >= 0. A byte of demand k moves from its rank to the other over links, so it
// costs at least the distance d_k of the two. What all resources can carry in a second costs at
// most the sum of capacity * p. Hence, with every demand at rate r,
//   r <= sum of capacity * p / sum of d_k  for any prices,
// and the least right side over all p is, by duality of linear programs, the best flow. For gather
// and scatter the best prices are those of a cut; for many pairs at once they need not be.

namespace espalier {

struct Demand {
  int from = 0, to = 0;  ///< ranks
};

/// What has to move between ranks: a block for every demand, the whole message for sendrecv. Empty
/// for the collectives that copy or combine, and where everything stays where it is.
std::vector<Demand> demands_of(Collective collective, int root, int ranks);

struct PackedPath {
  int demand = 0;                 ///< index
  std::vector<PackedEdge> edges;  ///< from rank to rank, in order
  Rational share;                 ///< of the demand
};

std::vector<Portion> portions_of(const PackingProblem& problem,
                                 const std::vector<PackedPath>& paths);

/// Rates are those of every demand, in the problem's unit.
struct PathPacking {
  std::vector<PackedPath> paths;  ///< by demand; shares of each add up to 1
  Rational rate;
  std::vector<Rational> prices;  ///< by resource; the distances of all demands add up to 1
  /// What the prices prove: sum of capacity * price. Equal to `rate` unless so many resources are
  /// full that they are not solved exactly.
  Rational limit;
};

/// The best paths by column generation, recovered and proved in exact arithmetic. `limit` is a
/// proof and `rate` is attained however the search went. \pre the problem is one_way and connected;
/// there is a demand.
PathPacking best_paths(const PackingProblem& problem, const std::vector<Demand>& demands);

}  // namespace espalier
