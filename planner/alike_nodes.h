// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/collective.h"
#include "topologies/placement.h"

namespace espalier {

/// Above so many ranks there is no search for trees that knows nothing of alike nodes: it would
/// take minutes.
inline constexpr int kMaxSearchedRanks = 512;

/// Whether the best trees for the collective can be planned by one node of the machine and the way
/// to the others (docs/planning.md), however many nodes there are: all are alike and no relays take
/// part. It is known for allreduce, allgather and reducescatter.
bool can_plan_by_nodes(Collective collective, const Router& router, const Placement& placement);

}  // namespace espalier
