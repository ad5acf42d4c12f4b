// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "core/check.h"
#include "planner/packing/site_distances.h"
#include "planner/packing/spanning_trees.h"

// The pricing problem of tree packing. Private to the room.

namespace espalier {

template <typename Price>
struct CheapestTree {
  Price price{};
  SpanningTree tree;
};

/// Up to this many relays, all sets of them are tried for the cheapest tree. Beyond, only some are:
/// none, all, and those that are left when relays are dropped one by one as long as that helps.
inline constexpr int kMaxSearchedRelays = 6;

/// Cheapest trees over the ranks of a packing problem when every load of a resource costs a price.
/// `Price`: double while searching, exact to prove.
template <typename Price>
class RankDistances {
 public:
  /// `prices`: of one load, by resource, none negative.
  RankDistances(const PackingProblem& problem, const std::vector<Price>& prices)
      : problem_(problem), ways_(problem, prices) {}

  /// From `root`, a rank. \pre the ranks are connected.
  CheapestTree<Price> tree(int root) const {
    std::optional<CheapestTree<Price>> best;
    std::vector<bool> best_relays;
    const auto offer = [&](std::vector<bool> relays) {
      auto joined = tree(root, relays);
      if (!joined || (best && !(joined->price < best->price))) return;
      best = std::move(joined);
      best_relays = std::move(relays);
    };
    const auto relays = static_cast<std::size_t>(problem_.relays);
    if (problem_.relays <= kMaxSearchedRelays) {
      for (unsigned set = 0; set < 1U << relays; ++set) {
        std::vector<bool> chosen(relays);
        for (std::size_t i = 0; i < relays; ++i) chosen[i] = (set >> i & 1U) != 0;
        offer(std::move(chosen));
      }
    } else {
      offer(std::vector<bool>(relays, false));
      offer(std::vector<bool>(relays, true));
      for (std::size_t i = 0; i < relays; ++i) {
        std::vector<bool> fewer = best_relays;
        fewer[i] = false;
        if (fewer != best_relays) offer(std::move(fewer));
      }
    }
    CHECK(best);
    drop_leaves(best->tree);
    return std::move(*best);
  }

 private:
  using Reach = typename SiteDistances<Price>::Reach;
  static constexpr int kUnreached = SiteDistances<Price>::kUnreached;

  /// Prim's algorithm over the ranks and the relays chosen. Of equally cheap edges the one least
  /// deep below the root goes first, so that the tree is low. Relays that nothing reaches are left
  /// out; nothing when that happens to a rank.
  std::optional<CheapestTree<Price>> tree(int root, const std::vector<bool>& relays) const {
    const int n = ways_.sites();
    const auto left_out = static_cast<int>(std::count(relays.begin(), relays.end(), false));
    CheapestTree<Price> result;
    std::vector<int> parent(static_cast<std::size_t>(n), root);
    std::vector<int> depth(static_cast<std::size_t>(n), 0);
    std::vector<bool> inside(static_cast<std::size_t>(n), false);
    for (int relay = 0; relay < problem_.relays; ++relay) {
      const auto chosen = static_cast<std::size_t>(relay);
      if (!relays[chosen]) inside[static_cast<std::size_t>(problem_.ranks) + chosen] = true;
    }
    inside[static_cast<std::size_t>(root)] = true;
    const auto better = [&](int from_a, int a, int from_b, int b) {
      const Reach& x = ways_.at(from_a, a);
      const Reach& y = ways_.at(from_b, b);
      if (x.arcs == kUnreached || y.arcs == kUnreached) return x.arcs != kUnreached;
      if (x.price < y.price) return true;
      if (y.price < x.price) return false;
      return depth[static_cast<std::size_t>(from_a)] < depth[static_cast<std::size_t>(from_b)];
    };
    for (int added = 1; added < n - left_out; ++added) {
      int next = -1;
      for (int rank = 0; rank < n; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        if (inside[r]) continue;
        if (next < 0 || better(parent[r], rank, parent[static_cast<std::size_t>(next)], next)) {
          next = rank;
        }
      }
      const auto joined = static_cast<std::size_t>(next);
      if (ways_.at(parent[joined], next).arcs == kUnreached) {
        const auto end_of_ranks = inside.begin() + problem_.ranks;
        if (std::find(inside.begin(), end_of_ranks, false) != end_of_ranks) return std::nullopt;
        break;
      }
      inside[joined] = true;
      depth[joined] = depth[static_cast<std::size_t>(parent[joined])] + 1;
      result.price += ways_.at(parent[joined], next).price;
      result.tree.push_back(ways_.edge(parent[joined], next));
      for (int rank = 0; rank < n; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        if (!inside[r] && better(next, rank, parent[r], rank)) parent[r] = next;
      }
    }
    return result;
  }

  /// Takes relays with a single edge off the tree.
  void drop_leaves(SpanningTree& tree) const {
    if (problem_.relays == 0) return;
    const auto is_leaf = [&](int site) {
      const auto edges = std::count_if(tree.begin(), tree.end(), [&](const PackedEdge& edge) {
        return edge.from == site || edge.to == site;
      });
      return site >= problem_.ranks && edges == 1;
    };
    const auto ends_in_leaf = [&](const PackedEdge& edge) {
      return is_leaf(edge.from) || is_leaf(edge.to);
    };
    while (true) {
      const auto leaf = std::find_if(tree.begin(), tree.end(), ends_in_leaf);
      if (leaf == tree.end()) return;
      tree.erase(leaf);
    }
  }

  const PackingProblem& problem_;
  SiteDistances<Price> ways_;
};

}  // namespace espalier
