// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "planner/spanning_trees.h"

// Private to the room.

namespace espalier {

/// Cheapest ways between the sites of a packing problem, its ranks and relays, when every load of a
/// resource costs a price. A way passes no other site: two ways that meet there serve a tree as
/// well.
template <typename Price>
class SiteDistances {
 public:
  static constexpr int kUnreached = -1;
  struct Reach {
    Price price{};
    int arcs = kUnreached;  ///< of the way there
    int before = 0;         ///< vertex before the last arc
    int resource = -1;      ///< of the last arc
  };

  /// `prices`: of one load, by resource, none negative. Of equally cheap ways the one of fewest
  /// arcs counts.
  SiteDistances(const PackingProblem& problem, const std::vector<Price>& prices)
      : problem_(problem) {
    for (std::size_t i = 0; i < prices.size(); ++i) {
      price_of_use_.push_back(prices[i] * problem.resources[i].load);
    }
    for (int site = 0; site < sites(); ++site) reach_.push_back(search(site));
  }

  int sites() const { return problem_.ranks + problem_.relays; }

  const Reach& at(int from, int to) const {
    return reach_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }

  /// The way itself. \pre there is one
  PackedEdge edge(int from, int to) const {
    PackedEdge result{from, to, {}, {}};
    for (int vertex = to; vertex != from; vertex = at(from, vertex).before) {
      if (vertex != to) result.vertices.push_back(vertex);
      if (at(from, vertex).resource >= 0) result.resources.push_back(at(from, vertex).resource);
    }
    std::reverse(result.vertices.begin(), result.vertices.end());
    std::reverse(result.resources.begin(), result.resources.end());
    return result;
  }

 private:
  /// Dijkstra from one rank or relay, not passing through others.
  std::vector<Reach> search(int source) const {
    struct Open {
      Price price;
      int arcs;
      int vertex;
      bool operator>(const Open& other) const {
        if (price != other.price) return other.price < price;
        return std::pair(arcs, vertex) > std::pair(other.arcs, other.vertex);
      }
    };
    std::vector<Reach> reach(problem_.arcs_from.size());
    std::vector<bool> settled(problem_.arcs_from.size(), false);
    std::priority_queue<Open, std::vector<Open>, std::greater<>> open;
    reach[static_cast<std::size_t>(source)].arcs = 0;
    open.push({Price{}, 0, source});
    while (!open.empty()) {
      const Open here = open.top();
      open.pop();
      const auto from = static_cast<std::size_t>(here.vertex);
      if (settled[from]) continue;
      settled[from] = true;
      if (here.vertex != source && here.vertex < sites()) continue;
      for (const PackingProblem::Arc& arc : problem_.arcs_from[from]) {
        Reach& known = reach[static_cast<std::size_t>(arc.to)];
        if (settled[static_cast<std::size_t>(arc.to)]) continue;
        Price price = here.price;
        if (arc.resource >= 0) price += price_of_use_[static_cast<std::size_t>(arc.resource)];
        const bool closer = known.arcs == kUnreached || price < known.price ||
                            (price == known.price && here.arcs + 1 < known.arcs);
        if (!closer) continue;
        known = {price, here.arcs + 1, here.vertex, arc.resource};
        open.push({std::move(price), here.arcs + 1, arc.to});
      }
    }
    return reach;
  }

  const PackingProblem& problem_;
  std::vector<Price> price_of_use_;
  std::vector<std::vector<Reach>> reach_;  ///< by site, by vertex
};

}  // namespace espalier
