// SPDX-License-Identifier: Apache-2.0
#include "planner/pack_paths.h"

#include <utility>

#include "core/check.h"
#include "planner/packing/demand_forest.h"
#include "planner/packing/peer_limits.h"

namespace espalier {

std::int64_t count_demands(Collective collective, int ranks) {
  const std::int64_t n = ranks;
  if (n == 1) return 0;
  if (collective == Collective::alltoall) return n * (n - 1);
  return collective == Collective::sendrecv ? n : n - 1;
}

Forest pack_paths(Collective collective, int root, const Router& router,
                  const Placement& placement) {
  const int n = static_cast<int>(placement.ranks.size());
  CHECK(root >= 0 && root < n);
  if (n == 1) return nothing_to_send(collective);
  CHECK(count_demands(collective, n) <= kMaxPathDemands);
  const PackingProblem problem = packing_problem(router, placement, EdgeUse::one_way);
  require_connected(problem, router, placement);
  Forest forest = plan_demands(collective, root, problem, router, placement);
  return keep_peer_limits(std::move(forest), router, placement, [&](const PeerChoice& peers) {
    return plan_demands(collective, root, among_peers(problem, peers), router, placement);
  });
}

}  // namespace espalier
