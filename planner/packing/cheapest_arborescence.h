// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

// Private to the room.

namespace espalier {

/// What every arc from a vertex to another costs, row by row; nothing where there is none.
template <typename Price>
using ArcPrices = std::vector<std::vector<std::optional<Price>>>;

namespace arborescence_detail {

template <typename Price>
struct Arc {
  Price price{};
  int from = 0, to = 0;  ///< in the graph before contraction
};
template <typename Price>
using Arcs = std::vector<std::vector<std::optional<Arc<Price>>>>;

inline std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// By vertex, the tail of the cheapest arc into it, the first of equals; -1 for the root.
template <typename Price>
std::vector<int> cheapest_tails(const Arcs<Price>& arcs, int root) {
  const int n = static_cast<int>(arcs.size());
  std::vector<int> tails(arcs.size(), -1);
  for (int to = 0; to < n; ++to) {
    if (to == root) continue;
    for (int from = 0; from < n; ++from) {
      const auto& arc = arcs[at(from)][at(to)];
      if (from == to || !arc) continue;
      if (tails[at(to)] < 0 || arc->price < arcs[at(tails[at(to)])][at(to)]->price) {
        tails[at(to)] = from;
      }
    }
  }
  return tails;
}

/// The vertices of a circle of tails; none where all lead to the root.
inline std::vector<int> circle_of(const std::vector<int>& tails) {
  std::vector<int> seen_from(tails.size(), -1);
  for (int start = 0; start < static_cast<int>(tails.size()); ++start) {
    int vertex = start;
    while (vertex >= 0 && seen_from[at(vertex)] < 0) {
      seen_from[at(vertex)] = start;
      vertex = tails[at(vertex)];
    }
    if (vertex < 0 || seen_from[at(vertex)] != start) continue;
    std::vector<int> circle{vertex};
    for (int on = tails[at(vertex)]; on != vertex; on = tails[at(on)]) circle.push_back(on);
    return circle;
  }
  return {};
}

template <typename Price>
std::vector<std::pair<int, int>> solve(const Arcs<Price>& arcs, int root) {
  const int n = static_cast<int>(arcs.size());
  const std::vector<int> tails = cheapest_tails(arcs, root);
  const std::vector<int> circle = circle_of(tails);
  std::vector<std::pair<int, int>> tree;
  if (circle.empty()) {
    for (int to = 0; to < n; ++to) {
      if (to != root) tree.emplace_back(tails[at(to)], to);
    }
    return tree;
  }
  // The circle becomes the last vertex of a smaller graph. An arc into it takes the place of the
  // circle's own arc at its head.
  std::vector<int> name(arcs.size(), -1);
  const int others = n - static_cast<int>(circle.size());
  for (const int vertex : circle) name[at(vertex)] = others;
  int next = 0;
  for (int& number : name) number = number < 0 ? next++ : number;
  Arcs<Price> smaller(at(others + 1), std::vector<std::optional<Arc<Price>>>(at(others + 1)));
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      const auto& arc = arcs[at(from)][at(to)];
      if (!arc || name[at(from)] == name[at(to)]) continue;
      Price price = arc->price;
      if (name[at(to)] == others) price -= arcs[at(tails[at(to)])][at(to)]->price;
      auto& known = smaller[at(name[at(from)])][at(name[at(to)])];
      if (!known || price < known->price) known = Arc<Price>{std::move(price), from, to};
    }
  }
  int entered = -1;
  for (const auto& [from, to] : solve(smaller, name[at(root)])) {
    const Arc<Price>& arc = *smaller[at(from)][at(to)];
    tree.emplace_back(arc.from, arc.to);
    if (to == others) entered = arc.to;
  }
  for (const int vertex : circle) {
    if (vertex != entered) tree.emplace_back(tails[at(vertex)], vertex);
  }
  return tree;
}

}  // namespace arborescence_detail

/// The arcs, tail and head, of the cheapest tree that leads from the root to every other vertex:
/// Chu and Liu 1965, Edmonds 1967. \pre every vertex can be reached
template <typename Price>
std::vector<std::pair<int, int>> cheapest_arborescence(const ArcPrices<Price>& prices, int root) {
  namespace detail = arborescence_detail;
  detail::Arcs<Price> arcs(prices.size());
  for (std::size_t from = 0; from < prices.size(); ++from) {
    for (const std::optional<Price>& price : prices[from]) {
      arcs[from].emplace_back();
      if (price) arcs[from].back() = detail::Arc<Price>{*price, 0, 0};
    }
  }
  return detail::solve(arcs, root);
}

}  // namespace espalier
