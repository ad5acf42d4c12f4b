// SPDX-License-Identifier: Apache-2.0
#include "planner/packing/demand_forest.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/packing/column_generation.h"
#include "planner/packing/fullest_link.h"

namespace espalier {
namespace {

/// From the sender down. The path of a gather is turned round: from the root to the owner.
PlannedTree planned_carrier(const PackingProblem& problem, const Carrier& carrier,
                            std::int64_t weight, bool turned) {
  PlannedTree result;
  result.weight = weight;
  for (const PackedEdge& edge : carrier.edges) {
    TreeEdge down{edge.from, edge.to, nodes_passed(problem, edge)};
    if (turned) {
      std::swap(down.parent, down.child);
      std::reverse(down.path.begin(), down.path.end());
    }
    result.edges.push_back(std::move(down));
  }
  if (turned) std::reverse(result.edges.begin(), result.edges.end());
  result.root = result.edges.front().parent;
  return result;
}

}  // namespace

Forest plan_demands(Collective collective, int root, const PackingProblem& problem,
                    const Router& router, const Placement& placement) {
  const std::vector<Demand> demands = demands_of(collective, root, problem.ranks);
  const DemandPacking packing = pack_demands(problem, demands);
  const std::vector<Carrier>& carriers = packing.carriers;
  const WholeWeights whole = whole_weights(problem, portions_of(problem, carriers));
  Forest forest;
  forest.collective = collective;
  forest.units = info(collective).blocked ? problem.ranks : 1;
  const bool turned = collective == Collective::gather;
  for (std::size_t i = 0; i < carriers.size(); ++i) {
    if (whole.weights[i] == 0) continue;
    forest.trees.push_back(planned_carrier(problem, carriers[i], whole.weights[i], turned));
  }
  const Rational algbw = whole.rate * problem.lower_unit * forest.units;
  forest.units *= whole.units;
  forest.algbw_gbps = rounded_gbps(algbw);
  forest.exact_algbw = exact_gbps(algbw);
  if (!packing.is_complete) forest.note = note_on_ended_search(packing.rate, packing.limit);
  raise_to_fullest_link(forest, router, placement);
  return forest;
}

}  // namespace espalier
