// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/spanning_trees.h"

// The pricing problem of tree packing. Private to the room.

namespace espalier {

template <typename Price>
struct CheapestTree {
  Price price{};
  SpanningTree tree;
};

/// Cheapest ways between the ranks of a packing problem when every load of a resource costs a
/// price, and the spanning trees made of them. `Price`: double while searching, exact to prove.
template <typename Price>
class RankDistances {
 public:
  /// `prices`: of one load, by resource, none negative. Of equally cheap ways the one of fewest
  /// arcs counts. A way passes no other rank: two ways that meet there serve a tree as well.
  RankDistances(const PackingProblem& problem, const std::vector<Price>& prices)
      : problem_(problem) {
    for (std::size_t i = 0; i < prices.size(); ++i) {
      price_of_use_.push_back(prices[i] * problem.resources[i].load);
    }
    for (int rank = 0; rank < problem.ranks; ++rank) reach_.push_back(search(rank));
  }

  /// Prim's algorithm from `root`. Of equally cheap edges the one least deep below the root goes
  /// first, so that the tree is low. \pre the ranks are connected.
  CheapestTree<Price> tree(int root) const {
    const int n = problem_.ranks;
    CheapestTree<Price> result;
    std::vector<int> parent(static_cast<std::size_t>(n), root);
    std::vector<int> depth(static_cast<std::size_t>(n), 0);
    std::vector<bool> inside(static_cast<std::size_t>(n), false);
    inside[static_cast<std::size_t>(root)] = true;
    const auto better = [&](int from_a, int a, int from_b, int b) {
      const Reach& x = at(from_a, a);
      const Reach& y = at(from_b, b);
      if (x.arcs == kUnreached || y.arcs == kUnreached) return x.arcs != kUnreached;
      if (x.price < y.price) return true;
      if (y.price < x.price) return false;
      return depth[static_cast<std::size_t>(from_a)] < depth[static_cast<std::size_t>(from_b)];
    };
    for (int added = 1; added < n; ++added) {
      int next = -1;
      for (int rank = 0; rank < n; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        if (inside[r]) continue;
        if (next < 0 || better(parent[r], rank, parent[static_cast<std::size_t>(next)], next)) {
          next = rank;
        }
      }
      const auto joined = static_cast<std::size_t>(next);
      inside[joined] = true;
      depth[joined] = depth[static_cast<std::size_t>(parent[joined])] + 1;
      result.price += at(parent[joined], next).price;
      result.tree.push_back(edge(parent[joined], next));
      for (int rank = 0; rank < n; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        if (!inside[r] && better(next, rank, parent[r], rank)) parent[r] = next;
      }
    }
    return result;
  }

 private:
  static constexpr int kUnreached = -1;
  struct Reach {
    Price price{};
    int arcs = kUnreached;  ///< of the way there
    int before = 0;         ///< vertex before the last arc
    int resource = -1;      ///< of the last arc
  };

  const Reach& at(int from, int to) const {
    return reach_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }

  /// Dijkstra from one rank, not passing through others.
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
      if (here.vertex != source && here.vertex < problem_.ranks) continue;
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

  const PackingProblem& problem_;
  std::vector<Price> price_of_use_;
  std::vector<std::vector<Reach>> reach_;  ///< by rank, by vertex
};

}  // namespace espalier
