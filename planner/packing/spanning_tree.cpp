// SPDX-License-Identifier: Apache-2.0
#include "planner/packing/spanning_tree.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace espalier {

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

TreeCentre centre_of(const SpanningTree& tree) {
  std::size_t n = 1;
  for (const PackedEdge& edge : tree) {
    n = std::max(n, static_cast<std::size_t>(std::max(edge.from, edge.to)) + 1);
  }
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

}  // namespace espalier
