// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "core/check.h"
#include "planner/packing/cheapest_tree.h"

// The pricing problem of tree packing on machines of many ranks. Private to the room.

namespace espalier {

/// The cheapest spanning tree of the ranks when every load of a resource costs a price, in the time
/// of two searches of the whole graph, where RankDistances takes one from every rank. Of equally
/// cheap trees any, however high.
///
/// Mehlhorn (Information Processing Letters 27(3), 1988): every vertex is near to one rank, and
/// edges that join the ranks nearest to the two ends of an arc are enough. For arcs of one
/// direction: let F(v) be the rank from which v is nearest, and B(v) the one that is nearest from
/// v. Along the way from rank s to rank t, vertex by vertex, the edges F(u) - B(v) of its arcs
/// (u, v) and F(v) - B(v) of its vertices lead from F(s) = s to B(t) = t, and none costs more than
/// the way. So the edge s - t is needed in no cheapest tree.
template <typename Price>
class NearestSites {
 public:
  /// `prices`: of one load, by resource, none negative. \pre there are no relays
  NearestSites(const PackingProblem& problem, const std::vector<Price>& prices)
      : problem_(problem) {
    CHECK(problem.relays == 0);
    for (std::size_t i = 0; i < prices.size(); ++i) {
      price_of_use_.push_back(prices[i] * problem.resources[i].load);
    }
    Arcs forward(problem.arcs_from.size()), backward(problem.arcs_from.size());
    for (std::size_t from = 0; from < problem.arcs_from.size(); ++from) {
      for (const PackingProblem::Arc& arc : problem.arcs_from[from]) {
        forward[from].push_back(arc);
        backward[static_cast<std::size_t>(arc.to)].push_back(
            {static_cast<int>(from), arc.resource});
      }
    }
    from_ = search(forward);
    to_ = search(backward);
  }

  /// \pre the ranks are connected
  CheapestTree<Price> tree() const {
    std::vector<Candidate> candidates = list_candidates();
    std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
      if (a.price != b.price) return a.price < b.price;
      return std::tie(a.tail, a.head) < std::tie(b.tail, b.head);
    });
    std::vector<int> part(static_cast<std::size_t>(problem_.ranks));
    std::iota(part.begin(), part.end(), 0);
    const auto part_of = [&](int rank) {
      while (part[at(rank)] != rank) rank = part[at(rank)] = part[at(part[at(rank)])];
      return rank;
    };
    CheapestTree<Price> result;
    for (const Candidate& candidate : candidates) {
      const int a = part_of(from_[at(candidate.tail)].site);
      const int b = part_of(to_[at(candidate.head)].site);
      if (a == b) continue;
      part[at(std::max(a, b))] = std::min(a, b);
      result.price += candidate.price;
      result.tree.push_back(edge(candidate));
    }
    CHECK(static_cast<int>(result.tree.size()) + 1 == problem_.ranks);
    return result;
  }

 private:
  static constexpr int kNone = -1;
  using Arcs = std::vector<std::vector<PackingProblem::Arc>>;
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  struct Reach {
    Price price{};
    int site = kNone;
    int before = kNone;    ///< vertex next to it on the way from (or to) the site
    int resource = kNone;  ///< of the arc between
  };
  /// From the rank nearest to `tail` over the arc to `head` to the rank nearest from there; no arc
  /// where both are one vertex.
  struct Candidate {
    Price price{};
    int tail = 0, head = 0;
    int resource = kNone;
  };

  Price cost_of(int resource) const { return resource < 0 ? Price{} : price_of_use_[at(resource)]; }

  std::vector<Reach> search(const Arcs& arcs) const {
    using Open = std::pair<Price, int>;
    std::vector<Reach> reach(arcs.size());
    std::vector<bool> settled(arcs.size(), false);
    std::priority_queue<Open, std::vector<Open>, std::greater<>> open;
    for (int site = 0; site < problem_.ranks; ++site) {
      reach[at(site)].site = site;
      open.push({Price{}, site});
    }
    while (!open.empty()) {
      const auto [price, vertex] = open.top();
      open.pop();
      if (settled[at(vertex)]) continue;
      settled[at(vertex)] = true;
      for (const PackingProblem::Arc& arc : arcs[at(vertex)]) {
        Reach& known = reach[at(arc.to)];
        if (settled[at(arc.to)] || arc.to < problem_.ranks) continue;
        Price next = price + cost_of(arc.resource);
        if (known.site != kNone && !(next < known.price)) continue;
        known = {next, reach[at(vertex)].site, vertex, arc.resource};
        open.push({std::move(next), arc.to});
      }
    }
    return reach;
  }

  std::vector<Candidate> list_candidates() const {
    std::vector<Candidate> candidates;
    const auto add = [&](int tail, int head, int resource) {
      const Reach& from = from_[at(tail)];
      const Reach& to = to_[at(head)];
      if (from.site == kNone || to.site == kNone || from.site == to.site) return;
      candidates.push_back({from.price + cost_of(resource) + to.price, tail, head, resource});
    };
    for (int tail = 0; tail < static_cast<int>(problem_.arcs_from.size()); ++tail) {
      add(tail, tail, kNone);
      for (const PackingProblem::Arc& arc : problem_.arcs_from[at(tail)]) {
        add(tail, arc.to, arc.resource);
      }
    }
    return candidates;
  }

  PackedEdge edge(const Candidate& candidate) const {
    PackedEdge result{from_[at(candidate.tail)].site, to_[at(candidate.head)].site, {}, {}};
    const auto visit = [&](int vertex) {
      if (vertex >= problem_.ranks) result.vertices.push_back(vertex);
    };
    const auto use = [&](int resource) {
      if (resource >= 0) result.resources.push_back(resource);
    };
    for (int v = candidate.tail; v != kNone; v = from_[at(v)].before) {
      visit(v);
      use(from_[at(v)].resource);
    }
    std::ranges::reverse(result.vertices);
    std::ranges::reverse(result.resources);
    use(candidate.resource);
    for (int v = candidate.head; v != kNone; v = to_[at(v)].before) {
      if (v != candidate.tail) visit(v);
      use(to_[at(v)].resource);
    }
    return result;
  }

  const PackingProblem& problem_;
  std::vector<Price> price_of_use_;
  std::vector<Reach> from_, to_;  ///< by vertex: the nearest rank before it, and after it
};

}  // namespace espalier
