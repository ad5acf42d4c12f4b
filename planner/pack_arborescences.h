// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "planner/forest.h"

namespace espalier {

struct PackingOptions {
  /// Number of trees at every root, all of one weight before identical ones are merged: more of
  /// them come closer to the optimum. 0: the fewest that attain it, or that come as near to it as
  /// `kNearOptimum` in pack_arborescences.cpp says, where that would be very many.
  std::int64_t trees_per_root = 0;
};

/// The best trees for broadcast, reduce, allgather and reducescatter under the router's profile and
/// link scope: as much bandwidth as the smallest cut allows (Edmonds 1973), through switches that
/// cannot copy or combine (ForestColl, arXiv 2402.06787; Bang-Jensen, Frank and Jackson 1995).
/// Optimal on full-duplex machines where GPUs may copy to any GPU they have a path to; elsewhere,
/// and with a fixed number of trees, what `algbw_gbps` says. For up to 16 ranks without relays,
/// where directions share a link or GPUs may map few others (Node::peer_limit), trees come from
/// linear programming instead, where that is better (see demand_packing.h). A forest for reduce or
/// reducescatter is one for broadcast or allgather turned round, since links are alike in both
/// directions.
///
/// The placement's relays take part where that helps: not always as well as they might, see
/// relay_roles.h.
///
/// Where the time is up (see TimeLimit), or the work to split off switches is spent, before it is
/// known which trees there are: chains from host
/// to host, hung up at the roots.
///
/// Throws Error{unsupported} naming a pair of ranks that no links in scope join.
/// \pre `collective` is one of the four; `root` is a rank.
Forest pack_arborescences(Collective collective, int root, const Router& router,
                          const Placement& placement, const PackingOptions& options = {});

}  // namespace espalier
