// SPDX-License-Identifier: Apache-2.0
#include "planner/trees/chains.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include "core/check.h"
#include "planner/packing/cheapest_ways.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxChains = 16;

/// Ranks that follow each other on one host.
std::vector<std::vector<int>> by_host(const PackingProblem& problem, const Topology& topology) {
  std::vector<std::vector<int>> hosts;
  int last_host = 0;
  for (const int rank : node_order(problem)) {
    const int host = topology.node(problem.node[static_cast<std::size_t>(rank)]).host;
    if (hosts.empty() || host != last_host) hosts.emplace_back();
    hosts.back().push_back(rank);
    last_host = host;
  }
  return hosts;
}

}  // namespace

std::optional<SpanningTree> chain(const PackingProblem& problem, const std::vector<int>& order,
                                  const std::vector<double>& prices) {
  std::vector<double> prices_of_use = prices;
  for (std::size_t r = 0; r < prices.size(); ++r) {
    prices_of_use[r] *= static_cast<double>(problem.resources[r].load);
  }
  SpanningTree tree;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    const int to = order[i + 1];
    const CheapestWays<double> ways(problem, prices_of_use, order[i], /*through_sites=*/false, to);
    if (ways.at(to).arcs == CheapestWays<double>::kUnreached) return std::nullopt;
    tree.push_back(ways.edge_to(to));
  }
  return tree;
}

std::vector<int> node_order(const PackingProblem& problem) {
  std::vector<int> order(static_cast<std::size_t>(problem.ranks));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {},
                    [&](int rank) { return problem.node[static_cast<std::size_t>(rank)]; });
  return order;
}

std::vector<SpanningTree> staggered_chains(const PackingProblem& problem,
                                           const Topology& topology) {
  const std::vector<std::vector<int>> hosts = by_host(problem, topology);
  std::size_t most = 0;
  for (const std::vector<int>& host : hosts) most = std::max(most, host.size());
  const std::size_t count = std::min(most, kMaxChains);
  std::vector<double> prices = prices_of_empty(problem);
  std::vector<SpanningTree> chains;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<int> order;
    for (const std::vector<int>& host : hosts) {
      const std::size_t first = i * host.size() / count;
      for (std::size_t at = 0; at < host.size(); ++at) {
        order.push_back(host[(first + at) % host.size()]);
      }
    }
    auto joined = chain(problem, order, prices);
    if (!joined) continue;
    raise_prices(problem, loads_of(problem, *joined), prices);
    chains.push_back(std::move(*joined));
  }
  return chains;
}

std::vector<SpanningTree> stars(const PackingProblem& problem) {
  std::vector<SpanningTree> all;
  for (int rank = 0; rank < problem.ranks; ++rank) {
    SpanningTree& star = all.emplace_back();
    for (const PackingProblem::Arc& arc : problem.arcs_from[static_cast<std::size_t>(rank)]) {
      if (arc.to >= problem.ranks) continue;
      PackedEdge& edge = star.emplace_back(PackedEdge{rank, arc.to, {}, {}});
      if (arc.resource >= 0) edge.resources.push_back(arc.resource);
    }
    if (static_cast<int>(star.size()) != problem.ranks - 1) return {};
  }
  return all;
}

TreePacking evenly(const PackingProblem& problem, std::vector<SpanningTree> trees) {
  CHECK(!trees.empty());
  Loads all(problem.resources.size(), 0);
  for (const SpanningTree& tree : trees) {
    const Loads loads = loads_of(problem, tree);
    for (std::size_t r = 0; r < all.size(); ++r) all[r] += loads[r];
  }
  Rational fullest = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    fullest = std::max(fullest, Rational(all[r], problem.resources[r].capacity));
  }
  TreePacking packing;
  packing.weights.assign(trees.size(), 1 / fullest);
  packing.rate = static_cast<std::int64_t>(trees.size()) / fullest;
  packing.trees = std::move(trees);
  return packing;
}

std::optional<TreePacking> best_stars(const PackingProblem& problem) {
  if (problem.relays > 0) return std::nullopt;
  Rational paid = 0;
  for (const PackingProblem::Resource& resource : problem.resources) {
    if (resource.load != 1) return std::nullopt;
    paid += resource.capacity;
  }
  for (const auto& arcs : problem.arcs_from) {
    if (std::ranges::any_of(arcs, [](const auto& arc) { return arc.resource < 0; })) {
      return std::nullopt;
    }
  }
  // Every edge of any tree uses a resource at least. At a price of 1 each, no tree is cheaper than
  // its edges are many.
  const std::int64_t edges = problem.ranks - 1;
  const Rational limit = paid / edges;
  std::vector<SpanningTree> trees = stars(problem);
  if (trees.empty()) return std::nullopt;
  TreePacking packing = evenly(problem, std::move(trees));
  if (packing.rate != limit) return std::nullopt;
  packing.prices.assign(problem.resources.size(), Rational(1, edges));
  packing.limit = limit;
  return packing;
}

}  // namespace espalier
