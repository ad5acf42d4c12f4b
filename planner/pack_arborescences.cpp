// SPDX-License-Identifier: Apache-2.0
#include "planner/pack_arborescences.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "core/activity.h"
#include "core/check.h"
#include "core/error.h"
#include "core/time_limit.h"
#include "planner/alike_nodes.h"
#include "planner/cells/plan_cells.h"
#include "planner/graph/capacity_graph.h"
#include "planner/graph/work_budget.h"
#include "planner/packing/column_generation.h"
#include "planner/packing/demand_forest.h"
#include "planner/packing/fullest_link.h"
#include "planner/packing/peer_limits.h"
#include "planner/trees/branchings.h"
#include "planner/trees/chains.h"
#include "planner/trees/edge_splitting.h"
#include "planner/trees/lower_trees.h"
#include "planner/trees/relay_roles.h"
#include "planner/trees/single_tree.h"
#include "planner/trees/tree_rate.h"

namespace espalier {
namespace {

/// Numbers of trees per root that are tried one after the other.
constexpr std::int64_t kFewTrees = 16;
/// Edges of all trees together, beyond which this much of the optimum will do. The last per cent
/// can take hundreds of trees per root, and costs more than it brings: a link that many trees
/// share moves each of them slowly, so that pipelines take long to fill unless pieces are tiny.
/// To come within 2 % with pipelines filled, as is promised, the plan alone has to come nearer.
constexpr std::int64_t kManyEdges = 3'000;
constexpr double kNearOptimum = 0.985;
/// Never more trees than these.
constexpr std::int64_t kMaxTrees = 20'000;
/// Arcs looked at while switches are split off (see WorkBudget): half a minute. 32 DGX H100 take
/// most of it for an allgather, 64 would take minutes.
constexpr std::int64_t kMaxSplittingWork = 16'000'000'000;

/// A plan found by prices has to be better by this: its weights are less even.
constexpr double kWorthPrices = 1e-6;

double width(const TreeGrid& grid) {
  return static_cast<double>(grid.capacity) / static_cast<double>(grid.trees);
}

struct SizedGrid {
  TreeGrid grid;
  std::int64_t k = 1;  ///< trees per root
};

SizedGrid choose_grid(const CapacityGraph& graph, const Supply& roots, const TreeRate& rate,
                      const PackingOptions& options) {
  const std::int64_t asked = options.trees_per_root;
  if (asked > 0) {
    if (auto grid = lossless_grid(graph, roots, rate, asked)) return {std::move(*grid), asked};
    return {widest_grid(graph, roots, rate, asked), asked};
  }
  const std::int64_t count = std::accumulate(roots.begin(), roots.end(), std::int64_t{0});
  const std::int64_t maximum = kManyEdges / (count * std::max(1, graph.ranks - 1));
  for (std::int64_t k = 1; k <= std::min({kFewTrees, maximum, rate.capacity}); ++k) {
    if (auto grid = lossless_grid(graph, roots, rate, k)) return {std::move(*grid), k};
  }
  if (rate.capacity <= maximum) {
    auto grid = lossless_grid(graph, roots, rate, rate.capacity);
    CHECK(grid.has_value());
    return {std::move(*grid), rate.capacity};
  }
  const double optimum = static_cast<double>(rate.capacity) / static_cast<double>(rate.supply);
  SizedGrid best;
  for (std::int64_t k = 1; k == 1 || k * count <= kMaxTrees; k += k < kFewTrees ? 1 : k / 2) {
    TreeGrid grid = widest_grid(graph, roots, rate, k);
    const double attained = width(grid) * static_cast<double>(k);
    if (k == 1 || attained > width(best.grid) * static_cast<double>(best.k)) {
      best = {std::move(grid), k};
    }
    if (attained >= kNearOptimum * optimum) break;
  }
  return best;
}

/// Removes switches; gives up trees, one sixteenth of them at a time, where that gets stuck.
/// Returns the trees per root that are left.
std::int64_t split_off(const CapacityGraph& graph, SizedGrid& sized, const Supply& roots,
                       const Topology& topology, std::optional<RankGraph>& ranks) {
  WorkBudget budget(kMaxSplittingWork);
  const auto attempt = [&](std::int64_t k) {
    Supply supply = roots;
    for (std::int64_t& units : supply) units *= k;
    ranks = split_off_switches(graph, sized.grid.arc_trees, supply, topology, budget);
    return ranks.has_value();
  };
  if (attempt(sized.k)) return sized.k;
  constexpr std::int64_t kSteps = 16;
  if (sized.k < kSteps) {
    sized.k *= kSteps;
    sized.grid.trees *= kSteps;
    for (std::int64_t& trees : sized.grid.arc_trees) trees *= kSteps;
  }
  for (std::int64_t step = 1; step < kSteps; ++step) {
    const std::int64_t k = sized.k - sized.k * step / kSteps;
    if (attempt(k)) return k;
  }
  throw Error(ErrorKind::unsupported,
              fmt::format("{}: found no trees that cross its switches without overloading "
                          "a link",
                          topology.name),
              "try --links fabric, which leaves out PCIe and network links, or another algorithm");
}

/// Whether the trees use an arc more often than `trees[from * ranks + to]`.
bool is_overloaded(const std::vector<Branching>& packed, std::vector<std::int64_t> trees,
                   int ranks) {
  for (const Branching& tree : packed) {
    for (const auto& [from, to] : tree.edges) {
      const auto arc = static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) +
                       static_cast<std::size_t>(to);
      if ((trees[arc] -= tree.weight) < 0) return true;
    }
  }
  return false;
}

/// The tree cut into trees whose edges have one way each. Uses up the strands; where more trees
/// come than strands hold, the last one takes the rest.
void add_planned(const Branching& tree, RankGraph& ranks, std::vector<PlannedTree>& planned) {
  std::vector<std::vector<Strand>> ways;
  for (const auto& [from, to] : tree.edges) {
    std::vector<Strand>& strands = ranks.strands(from, to);
    std::vector<Strand>& taken = ways.emplace_back();
    std::int64_t missing = tree.weight;
    const auto roomy = std::find_if(strands.begin(), strands.end(),
                                    [&](const Strand& strand) { return strand.trees >= missing; });
    // One way that fits, if there is one, and the first ones otherwise.
    for (auto at = roomy == strands.end() ? strands.begin() : roomy; missing > 0;) {
      if (at == strands.end()) {
        taken.push_back({strands.back().path, missing});
        break;
      }
      const std::int64_t part = std::min(missing, at->trees);
      if (part > 0) taken.push_back({at->path, part});
      missing -= part;
      at->trees -= part;
      at = at->trees == 0 && strands.size() > 1 ? strands.erase(at) : at + 1;
    }
  }
  std::vector<std::size_t> way(ways.size(), 0);
  for (std::int64_t left = tree.weight; left > 0;) {
    PlannedTree part{tree.root, left, {}};
    for (std::size_t i = 0; i < ways.size(); ++i) {
      part.weight = std::min(part.weight, ways[i][way[i]].trees);
    }
    for (std::size_t i = 0; i < ways.size(); ++i) {
      Strand& strand = ways[i][way[i]];
      part.edges.push_back({tree.edges[i].first, tree.edges[i].second, strand.path});
      strand.trees -= part.weight;
      if (strand.trees == 0) ++way[i];
    }
    left -= part.weight;
    planned.push_back(std::move(part));
  }
}

Forest pack_graph(Collective collective, const CapacityGraph& graph, const Supply& roots,
                  const Router& router, const Placement& placement, const PackingOptions& options) {
  const TreeRate rate = best_rate(graph, roots);
  require_connected(rate, graph, roots, router);
  SizedGrid sized = choose_grid(graph, roots, rate, options);
  std::optional<RankGraph> ranks;
  const std::int64_t k = split_off(graph, sized, roots, router.topology(), ranks);

  std::vector<std::int64_t> trees;
  for (int from = 0; from < graph.ranks; ++from) {
    for (int to = 0; to < graph.ranks; ++to) trees.push_back(ranks->trees(from, to));
  }
  Supply supply = roots;
  for (std::int64_t& units : supply) units *= k;
  Forest forest;
  forest.collective = collective;
  forest.units = std::accumulate(supply.begin(), supply.end(), std::int64_t{0});
  const std::vector<Branching> packed = pack_branchings(graph.ranks, trees, supply);
  for (const Branching& tree : lower_trees(graph.ranks, trees, packed)) {
    add_planned(tree, *ranks, forest.trees);
  }
  make_relays_sites(forest.trees, graph, placement);
  const Rational algbw =
      graph.unit_bytes_per_s * forest.units * sized.grid.capacity / sized.grid.trees;
  forest.algbw_gbps = rounded_gbps(algbw);
  forest.exact_algbw = exact_gbps(algbw);
  if (is_overloaded(packed, trees, graph.ranks)) {
    const Rational limit = graph.unit_bytes_per_s * rate.capacity / rate.supply *
                           std::accumulate(roots.begin(), roots.end(), std::int64_t{0});
    set_to_fullest_link(forest, router, placement);
    forest.note = note_on_ended_search(Rational(forest.algbw_gbps), limit / 1'000'000'000);
  } else {
    raise_to_fullest_link(forest, router, placement);
  }
  return forest;
}

/// The better of the plans with half-duplex links and media divided beforehand.
Forest pack_divided(Collective collective, int root, const Router& router,
                    const Placement& placement, const PackingOptions& options) {
  const bool rooted = collective == Collective::broadcast || collective == Collective::reduce;
  Supply roots(placement.ranks.size(), rooted ? 0 : 1);
  roots[static_cast<std::size_t>(root)] = 1;
  const auto plan_with = [&](MediaUse media, const std::vector<RelayRole>& roles) {
    const CapacityGraph graph = capacity_graph(router, placement, media, root, roles);
    Supply supply = roots;
    supply.resize(static_cast<std::size_t>(graph.ranks), 0);
    return pack_graph(collective, graph, supply, router, placement, options);
  };
  const auto plan = [&](MediaUse media) {
    if (placement.relays.empty()) return plan_with(media, {});
    const RelayPlan relays = choose_roles(router, placement, roots, media, root);
    return plan_with(media, relays.roles);
  };
  Forest forest = plan(MediaUse::evenly);
  if (rooted && has_half_duplex_links(router)) {
    Forest outward = plan(MediaUse::outward);
    if (outward.algbw_gbps > forest.algbw_gbps) return outward;
  }
  return forest;
}

/// Trees hung up at the roots.
Forest hung_at_roots(Collective collective, int root, const PackingProblem& problem,
                     const std::vector<SpanningTree>& trees, const Router& router,
                     const Placement& placement) {
  Forest forest;
  forest.collective = collective;
  const bool rooted = info(collective).rooted;
  // All of them from a single root, or one from every root.
  const std::size_t count = rooted ? trees.size() : static_cast<std::size_t>(problem.ranks);
  forest.units = static_cast<std::int64_t>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const int at = rooted ? root : static_cast<int>(i);
    forest.trees.push_back(hung_at(problem, trees[i % trees.size()], at, /*weight=*/1));
  }
  set_to_fullest_link(forest, router, placement);
  return forest;
}

/// For when it takes too long to find out which trees are best: stars or chains, whichever carry
/// more; a tree where there are none.
Forest pack_ready_trees(Collective collective, int root, const Router& router,
                        const Placement& placement) {
  const PackingProblem problem = packing_problem(router, placement, EdgeUse::both_ways);
  require_connected(problem, router, placement);
  const auto hung = [&](const std::vector<SpanningTree>& trees) {
    return hung_at_roots(collective, root, problem, trees, router, placement);
  };
  std::vector<SpanningTree> chains = staggered_chains(problem, router.topology());
  if (chains.empty()) chains = good_single_tree(problem).trees;
  Forest forest = hung(chains);
  std::vector<SpanningTree> around = stars(problem);
  // The root's own star would take as much of its links as all others together.
  if (around.size() > 2 && info(collective).rooted) around.erase(around.begin() + root);
  if (!around.empty()) {
    Forest by_stars = hung(around);
    if (by_stars.algbw_gbps > forest.algbw_gbps) forest = std::move(by_stars);
  }
  forest.note = note_on_any_search(problem.ranks, Rational(forest.algbw_gbps), 0);
  return forest;
}

Forest pack_in_time(Collective collective, int root, const Router& router,
                    const Placement& placement, const PackingOptions& options) {
  const bool is_searched = placement.ranks.size() <= static_cast<std::size_t>(kMaxSearchedRanks);
  if (!is_searched && options.trees_per_root == 0)
    return pack_ready_trees(collective, root, router, placement);
  const Activity activity("packing trees");
  try {
    return pack_divided(collective, root, router, placement, options);
  } catch (const OutOfBudget&) {
    return pack_ready_trees(collective, root, router, placement);
  }
}

/// Whether every root has `k` trees of one weight, of which alike ones have been merged.
bool has_trees_per_root(const Forest& forest, int ranks, std::int64_t k) {
  return std::ranges::all_of(forest.trees, [&](const PlannedTree& tree) {
    return tree.weight * k * ranks % forest.units == 0;
  });
}

bool has_shared_directions(const Router& router) {
  return std::ranges::any_of(router.topology().links, [&](const Link& link) {
    return link.duplex != Duplex::full && router.hop(link.a, link.b).has_value();
  });
}

}  // namespace

Forest pack_arborescences(Collective collective, int root, const Router& router,
                          const Placement& placement, const PackingOptions& options) {
  CHECK(!has_paths(collective) && collective != Collective::allreduce);
  const int n = static_cast<int>(placement.ranks.size());
  CHECK(root >= 0 && root < n);
  if (n == 1) return nothing_to_send(collective);
  const std::int64_t k = options.trees_per_root;
  std::optional<Forest> by_cells;
  if (n >= kMinRanksByCells && placement.relays.empty() && info(collective).blocked) {
    by_cells = plan_by_cells(collective, router, placement);
    if (by_cells && k > 0 && !has_trees_per_root(*by_cells, n, k)) by_cells.reset();
    if (by_cells && is_good_by_cells(*by_cells, router, placement)) return std::move(*by_cells);
  }
  Forest forest = pack_in_time(collective, root, router, placement, options);
  if (by_cells && by_cells->algbw_gbps > forest.algbw_gbps) return std::move(*by_cells);
  if (n > kMaxPricedTreeRanks || !placement.relays.empty() || k > 0) return forest;
  const PackingProblem problem = packing_problem(router, placement, EdgeUse::one_way);
  if (has_shared_directions(router) && !is_time_up()) {
    Forest priced = plan_demands(collective, root, problem, router, placement);
    if (priced.algbw_gbps > forest.algbw_gbps * (1 + kWorthPrices)) forest = std::move(priced);
  }
  return keep_peer_limits(std::move(forest), router, placement, [&](const PeerChoice& peers) {
    return plan_demands(collective, root, among_peers(problem, peers), router, placement);
  });
}

}  // namespace espalier
