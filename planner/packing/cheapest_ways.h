// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/packing/packing_problem.h"

// Shortest ways through a packing problem. Private to the room.

namespace espalier {

/// Cheapest ways from one site, a rank or relay, when every load of a resource costs a price.
/// `Price`: double while searching, exact to prove.
template <typename Price>
class CheapestWays {
 public:
  static constexpr int kUnreached = -1;
  struct Reach {
    Price price{};
    int arcs = kUnreached;  ///< of the way there
    int before = 0;         ///< vertex before the last arc
    int resource = -1;      ///< of the last arc
  };

  /// `through_sites`: whether ways may pass other sites. `prices`: of one use, by resource, none
  /// negative. Of equally cheap ways the one of fewest arcs counts. `only_to`: the vertex to which
  /// a way is looked for, or all of them.
  CheapestWays(const PackingProblem& problem, const std::vector<Price>& prices, int source,
               bool through_sites, std::optional<int> only_to = {})
      : source_(source), reach_(problem.arcs_from.size()) {
    std::vector<bool> settled(reach_.size(), false);
    std::priority_queue<Open, std::vector<Open>, std::greater<>> open;
    reach_[static_cast<std::size_t>(source)].arcs = 0;
    open.push({Price{}, 0, source});
    while (!open.empty()) {
      const Open here = open.top();
      open.pop();
      const auto from = static_cast<std::size_t>(here.vertex);
      if (settled[from]) continue;
      settled[from] = true;
      if (here.vertex == only_to) return;
      if (!through_sites && here.vertex != source && here.vertex < problem.sites()) continue;
      for (const PackingProblem::Arc& arc : problem.arcs_from[from]) {
        Reach& known = reach_[static_cast<std::size_t>(arc.to)];
        if (settled[static_cast<std::size_t>(arc.to)]) continue;
        Price price = here.price;
        if (arc.resource >= 0) price += prices[static_cast<std::size_t>(arc.resource)];
        const bool closer = known.arcs == kUnreached || price < known.price ||
                            (price == known.price && here.arcs + 1 < known.arcs);
        if (!closer) continue;
        known = {price, here.arcs + 1, here.vertex, arc.resource};
        open.push({std::move(price), here.arcs + 1, arc.to});
      }
    }
  }

  const Reach& at(int vertex) const { return reach_[static_cast<std::size_t>(vertex)]; }

  /// The way to a site, as one edge. \pre there is one
  PackedEdge edge_to(int site) const {
    PackedEdge result{source_, site, {}, {}};
    for (int vertex = site; vertex != source_; vertex = at(vertex).before) {
      if (vertex != site) result.vertices.push_back(vertex);
      if (at(vertex).resource >= 0) result.resources.push_back(at(vertex).resource);
    }
    std::reverse(result.vertices.begin(), result.vertices.end());
    std::reverse(result.resources.begin(), result.resources.end());
    return result;
  }

  /// The way to a rank, as edges between the sites passed: vertices below `sites`.
  std::vector<PackedEdge> path_to(int rank, int sites) const {
    std::vector<PackedEdge> path;
    for (int vertex = rank; vertex != source_; vertex = at(vertex).before) {
      if (vertex < sites) {
        path.push_back({0, vertex, {}, {}});
      } else {
        path.back().vertices.push_back(vertex);
      }
      if (at(vertex).before < sites) path.back().from = at(vertex).before;
      if (at(vertex).resource >= 0) path.back().resources.push_back(at(vertex).resource);
    }
    for (PackedEdge& edge : path) {
      std::reverse(edge.vertices.begin(), edge.vertices.end());
      std::reverse(edge.resources.begin(), edge.resources.end());
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  struct Open {
    Price price;
    int arcs;
    int vertex;
    bool operator>(const Open& other) const {
      if (price != other.price) return other.price < price;
      return std::pair(arcs, vertex) > std::pair(other.arcs, other.vertex);
    }
  };

  int source_;
  std::vector<Reach> reach_;  ///< by vertex
};

}  // namespace espalier
