// SPDX-License-Identifier: Apache-2.0
#include "planner/pack_allreduce.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "planner/alike_nodes.h"
#include "planner/cells/plan_cells.h"
#include "planner/packing/column_generation.h"
#include "planner/packing/fullest_link.h"
#include "planner/packing/peer_limits.h"
#include "planner/packing/spanning_tree.h"
#include "planner/packing/spanning_trees.h"
#include "planner/packing/whole_weights.h"
#include "planner/trees/chains.h"
#include "planner/trees/equal_trees.h"
#include "planner/trees/single_tree.h"

namespace espalier {
namespace {

/// Trees of one weight are preferred up to this many.
constexpr std::int64_t kMaxEqualTrees = 128;

/// The packing, or chains where its search ended early and these are better.
TreePacking or_chains(const PackingProblem& problem, const Topology& topology,
                      TreePacking packing) {
  if (packing.is_complete) return packing;
  std::vector<SpanningTree> chains = staggered_chains(problem, topology);
  if (chains.empty()) return packing;
  TreePacking even = evenly(problem, std::move(chains));
  if (even.rate <= packing.rate) return packing;
  even.prices = std::move(packing.prices);
  even.limit = packing.limit;
  even.is_complete = false;
  return even;
}

/// Without a search.
TreePacking ready_trees(const PackingProblem& problem, const Topology& topology) {
  std::vector<SpanningTree> chains = staggered_chains(problem, topology);
  TreePacking packing =
      chains.empty() ? good_single_tree(problem) : evenly(problem, std::move(chains));
  packing.is_complete = false;
  return packing;
}

TreePacking choose_trees(const PackingProblem& problem, const Topology& topology, TreeCount trees) {
  if (trees == TreeCount::one) return good_single_tree(problem);
  if (problem.ranks > kMaxRanksWithoutCells) {
    if (auto best = best_stars(problem)) return std::move(*best);
  }
  if (problem.ranks > kMaxSearchedRanks) return ready_trees(problem, topology);
  TreePacking packing = or_chains(problem, topology, pack_spanning_trees(problem));
  auto equal = equal_trees(problem, packing, kMaxEqualTrees);
  return equal ? std::move(*equal) : packing;
}

/// \pre the ranks are connected
Forest pack_problem(const PackingProblem& problem, TreeCount trees, const Router& router,
                    const Placement& placement) {
  const TreePacking packing = choose_trees(problem, router.topology(), trees);
  const WholeWeights whole = whole_weights(problem, portions_of(problem, packing));
  Forest forest;
  forest.collective = Collective::allreduce;
  for (std::size_t i = 0; i < whole.weights.size(); ++i) {
    if (whole.weights[i] == 0) continue;
    forest.trees.push_back(hung_at_centre(problem, packing.trees[i], whole.weights[i]));
  }
  const Rational rate = whole.rate * problem.lower_unit;
  forest.units = whole.units;
  forest.algbw_gbps = rounded_gbps(rate);
  forest.exact_algbw = exact_gbps(rate);
  if (!packing.is_complete) {
    forest.note = note_on_any_search(problem.ranks, packing.rate, packing.limit);
  }
  raise_to_fullest_link(forest, router, placement);
  return forest;
}

Forest pack_within_limits(const PackingProblem& problem, TreeCount trees, const Router& router,
                          const Placement& placement) {
  Forest forest = pack_problem(problem, trees, router, placement);
  return keep_peer_limits(std::move(forest), router, placement, [&](const PeerChoice& peers) {
    return pack_problem(among_peers(problem, peers), trees, router, placement);
  });
}

/// A plan without relays is kept unless relays make it better by more than this: exact weights may
/// have to be given up for some that are a little worse.
constexpr double kWorthRelays = 1e-6;

}  // namespace

Forest pack_allreduce(const Router& router, const Placement& placement, TreeCount trees) {
  if (placement.ranks.size() == 1) return nothing_to_send(Collective::allreduce);
  const PackingProblem problem = packing_problem(router, placement, EdgeUse::both_ways);
  require_connected(problem, router, placement);
  std::optional<Forest> by_cells;
  if (problem.ranks >= kMinRanksByCells && problem.relays == 0 && trees == TreeCount::best) {
    by_cells = plan_by_cells(Collective::allreduce, router, placement);
    if (by_cells && is_good_by_cells(*by_cells, router, placement)) return std::move(*by_cells);
  }
  Forest forest = pack_within_limits(problem, trees, router, placement);
  if (by_cells && by_cells->algbw_gbps > forest.algbw_gbps) return std::move(*by_cells);
  if (placement.relays.empty()) return forest;
  Placement ranks_alone = placement;
  ranks_alone.relays.clear();
  const PackingProblem plain = packing_problem(router, ranks_alone, EdgeUse::both_ways);
  if (!is_connected(plain)) return forest;
  Forest without = pack_within_limits(plain, trees, router, ranks_alone);
  const bool helps = forest.algbw_gbps > without.algbw_gbps * (1 + kWorthRelays);
  return helps ? forest : without;
}

}  // namespace espalier
