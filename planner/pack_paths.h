// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/forest.h"

namespace espalier {

/// Maximum number of demands (pairs of ranks that exchange data) that are planned: alltoall over 64
/// ranks.
inline constexpr int kMaxPathDemands = 4096;

/// How many the collective has: ranks - 1 for gather and scatter, ranks (ranks - 1) for alltoall,
/// `ranks` for sendrecv.
std::int64_t count_demands(Collective collective, int ranks);

/// The best paths for gather, scatter, alltoall and sendrecv under the router's profile and link
/// scope: the maximum concurrent flow, by linear programming (see demand_packing.h). Half-duplex
/// links and shared media are divided as is best. Where exact shares of a block take more than 2048
/// parts, the nearest ones are taken; `algbw_gbps` says what that attains. The placement's relays
/// store and forward as ranks do.
///
/// Throws Error{unsupported} naming a pair of ranks that no links in scope join.
/// \pre `collective` is one of the four; `root` is a rank; at most kMaxPathDemands demands.
Forest pack_paths(Collective collective, int root, const Router& router,
                  const Placement& placement);

}  // namespace espalier
