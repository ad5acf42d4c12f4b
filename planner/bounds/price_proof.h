// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "planner/bounds/bound_judge.h"

// Private to the room.

namespace espalier {

/// Shows the judge the limit on allreduce that the prices of the best tree packing prove (see
/// spanning_trees.h): as a partition when they are those of one, else as prices. With relays, each
/// merged with a rank, in some of the ways to do that. `max_work`: see pack_spanning_trees.
void judge_by_prices(const Router& router, const Placement& placement, const CutGraph& graph,
                     BoundJudge& judge, std::int64_t max_work);

/// The same on a machine of many alike ranks, with one price for every class of alike links (see
/// class_prices.h); shows nothing where links are not alike. \return whether it has found the best
/// prices for the classes. \pre no relays
bool judge_by_classes(const Router& router, const Placement& placement, const CutGraph& graph,
                      BoundJudge& judge);

/// Shows the judge the limit that the prices of the best packing of paths prove (gather, scatter,
/// alltoall, sendrecv) or of trees (broadcast, reduce, allgather, reducescatter; no relays): see
/// demand_packing.h.
void judge_by_demands(Collective collective, int root, const Router& router,
                      const Placement& placement, const CutGraph& graph, BoundJudge& judge);

}  // namespace espalier
