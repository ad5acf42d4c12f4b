// SPDX-License-Identifier: Apache-2.0
#include "planner/pack_paths.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/check.h"
#include "planner/fullest_link.h"
#include "planner/path_packing.h"
#include "planner/peer_limits.h"

namespace espalier {
namespace {

/// From the sender down, or, for a gather, from the root up to the owner.
PlannedTree planned(const PackingProblem& problem, const PackedPath& path, std::int64_t weight,
                    bool up) {
  PlannedTree result;
  result.weight = weight;
  for (const PackedEdge& edge : path.edges) {
    TreeEdge down{edge.from, edge.to, nodes_passed(problem, edge)};
    if (up) {
      std::swap(down.parent, down.child);
      std::reverse(down.path.begin(), down.path.end());
    }
    result.edges.push_back(std::move(down));
  }
  if (up) std::reverse(result.edges.begin(), result.edges.end());
  result.root = result.edges.front().parent;
  return result;
}

/// \pre the ranks are connected
Forest pack(const PackingProblem& problem, Collective collective,
            const std::vector<Demand>& demands, const Router& router, const Placement& placement) {
  const std::vector<PackedPath> paths = best_paths(problem, demands).paths;
  const WholeWeights whole = whole_weights(problem, portions_of(problem, paths));
  Forest forest;
  forest.collective = collective;
  forest.units = info(collective).blocked ? problem.ranks : 1;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (whole.weights[i] == 0) continue;
    forest.trees.push_back(planned(problem, paths[i], whole.weights[i], goes_up(collective)));
  }
  const Rational algbw = whole.rate * problem.lower_unit * forest.units;
  forest.units *= whole.units;
  forest.algbw_gbps = rounded_gbps(algbw);
  forest.exact_algbw = exact_gbps(algbw);
  raise_to_fullest_link(forest, router, placement);
  return forest;
}

}  // namespace

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
  const std::vector<Demand> demands = demands_of(collective, root, n);
  CHECK(!demands.empty() && demands.size() <= static_cast<std::size_t>(kMostPathDemands));
  const PackingProblem problem = packing_problem(router, placement, LinkUse::one_way);
  require_connected(problem, router, placement);
  Forest forest = pack(problem, collective, demands, router, placement);
  return keep_peer_limits(std::move(forest), router, placement, [&](const PeerChoice& peers) {
    return pack(among_peers(problem, peers), collective, demands, router, placement);
  });
}

}  // namespace espalier
