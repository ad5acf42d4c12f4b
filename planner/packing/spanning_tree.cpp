// SPDX-License-Identifier: Apache-2.0
#include "planner/packing/spanning_tree.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace espalier {

namespace {

/// Up to the last one that the tree joins.
std::size_t ranks_in(const SpanningTree& tree) {
  std::size_t n = 1;
  for (const PackedEdge& edge : tree) {
    n = std::max(n, static_cast<std::size_t>(std::max(edge.from, edge.to)) + 1);
  }
  return n;
}

}  // namespace

Loads loads_of(const PackingProblem& problem, const SpanningTree& tree) {
  Loads loads(problem.resources.size(), 0);
  for (const PackedEdge& edge : tree) {
    for (const int resource : edge.resources) {
      const auto r = static_cast<std::size_t>(resource);
      loads[r] += problem.resources[r].load;
    }
  }
  return loads;
}

std::vector<double> prices_of_empty(const PackingProblem& problem) {
  std::vector<double> prices;
  for (const auto& resource : problem.resources) {
    prices.push_back(1 / static_cast<double>(resource.capacity));
  }
  return prices;
}

void raise_prices(const PackingProblem& problem, const Loads& loads, std::vector<double>& prices) {
  const auto capacity = [&](std::size_t r) {
    return static_cast<double>(problem.resources[r].capacity);
  };
  double maximum = 0;
  for (std::size_t r = 0; r < loads.size(); ++r) {
    maximum = std::max(maximum, static_cast<double>(loads[r]) / capacity(r));
  }
  for (std::size_t r = 0; r < loads.size(); ++r) {
    prices[r] *= 1 + 0.5 * static_cast<double>(loads[r]) / capacity(r) / maximum;
  }
}

TreeCentre centre_of(const SpanningTree& tree) {
  const std::size_t n = ranks_in(tree);
  std::vector<std::vector<int>> neighbours(n);
  for (const PackedEdge& edge : tree) {
    neighbours[static_cast<std::size_t>(edge.from)].push_back(edge.to);
    neighbours[static_cast<std::size_t>(edge.to)].push_back(edge.from);
  }
  // The longest path joins the rank farthest from any to the one farthest from that.
  const auto farthest = [&](int start) {
    std::vector<int> path_to(n, -1);
    path_to[static_cast<std::size_t>(start)] = start;
    std::vector<int> order{start};
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const int next : neighbours[static_cast<std::size_t>(order[i])]) {
        if (path_to[static_cast<std::size_t>(next)] >= 0) continue;
        path_to[static_cast<std::size_t>(next)] = order[i];
        order.push_back(next);
      }
    }
    std::vector<int> path{order.back()};
    while (path.back() != start) path.push_back(path_to[static_cast<std::size_t>(path.back())]);
    return path;
  };
  const std::vector<int> longest = farthest(farthest(0).front());
  return {longest[longest.size() / 2], static_cast<int>(longest.size() / 2)};
}

PlannedTree hung_at(const PackingProblem& problem, const SpanningTree& tree, int root,
                    std::int64_t weight) {
  PlannedTree result;
  result.root = root;
  result.weight = weight;
  std::vector<std::vector<std::size_t>> edges_at(ranks_in(tree));
  for (std::size_t i = 0; i < tree.size(); ++i) {
    edges_at[static_cast<std::size_t>(tree[i].from)].push_back(i);
    edges_at[static_cast<std::size_t>(tree[i].to)].push_back(i);
  }
  std::vector<bool> placed(tree.size(), false);
  std::vector<int> order{result.root};
  for (std::size_t next = 0; next < order.size(); ++next) {
    const int parent = order[next];
    for (const std::size_t i : edges_at[static_cast<std::size_t>(parent)]) {
      if (placed[i]) continue;
      const PackedEdge& edge = tree[i];
      placed[i] = true;
      TreeEdge hung{parent, edge.from == parent ? edge.to : edge.from, nodes_passed(problem, edge)};
      if (edge.from != parent) std::reverse(hung.path.begin(), hung.path.end());
      order.push_back(hung.child);
      result.edges.push_back(std::move(hung));
    }
  }
  return result;
}

PlannedTree hung_at_centre(const PackingProblem& problem, const SpanningTree& tree,
                           std::int64_t weight) {
  return hung_at(problem, tree, centre_of(tree).rank, weight);
}

}  // namespace espalier
