// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/forest.h"
#include "planner/packing/demand_packing.h"

// Private to the room.

namespace espalier {

/// The plan that serves all demands of a collective (see `demands_of`) at the best rate, with
/// weights in whole units (see whole_weights.h). \pre as for pack_demands; there are demands
Forest plan_demands(Collective collective, int root, const PackingProblem& problem,
                    const Router& router, const Placement& placement);

}  // namespace espalier
