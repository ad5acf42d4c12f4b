// SPDX-License-Identifier: Apache-2.0
#include "planner/alike_nodes.h"

#include "planner/cells/cells.h"

namespace espalier {

bool can_plan_by_nodes(Collective collective, const Router& router, const Placement& placement) {
  const bool is_known = collective == Collective::allreduce ||
                        collective == Collective::allgather ||
                        collective == Collective::reducescatter;
  if (!is_known || !placement.relays.empty()) return false;
  const PackingProblem problem = packing_problem(router, placement, EdgeUse::both_ways);
  return find_cells(problem, router.topology()).has_value();
}

}  // namespace espalier
