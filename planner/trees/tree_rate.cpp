// SPDX-License-Identifier: Apache-2.0
#include "planner/trees/tree_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/check.h"
#include "core/error.h"
#include "core/time_limit.h"
#include "planner/graph/max_flow.h"

namespace espalier {
namespace {

/// The graph with a super source that feeds every rank what it supplies.
class SuppliedFlow {
 public:
  SuppliedFlow(const CapacityGraph& graph) : graph_(graph), flow_(graph.vertices() + 1) {
    for (const CapacityGraph::Arc& arc : graph.arcs) flow_.add(arc.from, arc.to, 0);
    for (int rank = 0; rank < graph.ranks; ++rank) flow_.add(source(), rank, 0);
  }

  int source() const { return graph_.vertices(); }
  void set_arc(std::size_t arc, std::int64_t capacity) {
    flow_.set_capacity(static_cast<int>(arc), capacity);
  }
  void set_supply(int rank, std::int64_t supply) {
    flow_.set_capacity(static_cast<int>(graph_.arcs.size()) + rank, supply);
  }
  std::int64_t into(int rank, std::int64_t limit) { return flow_.run(source(), rank, limit); }
  bool on_source_side(int vertex) const { return flow_.on_source_side(vertex); }

 private:
  const CapacityGraph& graph_;
  MaxFlow flow_;
};

std::int64_t total(const Supply& supply) {
  return std::accumulate(supply.begin(), supply.end(), std::int64_t{0});
}

bool less(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return Wide{a} * d < Wide{c} * b;
}

/// The rate a set allows; supply 0 when the set does not bind.
TreeRate rate_of(const CapacityGraph& graph, const Supply& supply, std::vector<bool> inside) {
  TreeRate rate{0, 0, std::move(inside)};
  for (const CapacityGraph::Arc& arc : graph.arcs) {
    if (rate.inside[arc.from] && !rate.inside[arc.to]) rate.capacity += arc.capacity;
  }
  for (int rank = 0; rank < graph.ranks; ++rank) {
    if (rate.inside[rank]) rate.supply += supply[rank];
  }
  const std::int64_t divisor = std::max<std::int64_t>(1, std::gcd(rate.capacity, rate.supply));
  rate.capacity /= divisor;
  rate.supply /= divisor;
  return rate;
}

/// Everything but one rank, for the rank where that binds most.
TreeRate rate_into_single_ranks(const CapacityGraph& graph, const Supply& supply) {
  TreeRate best;
  for (int rank = 0; rank < graph.ranks; ++rank) {
    std::vector<bool> inside(graph.node.size(), true);
    inside[rank] = false;
    TreeRate rate = rate_of(graph, supply, std::move(inside));
    if (rate.supply == 0) continue;
    if (best.inside.empty() || less(rate.capacity, rate.supply, best.capacity, best.supply)) {
      best = std::move(rate);
    }
  }
  CHECK(!best.inside.empty());
  return best;
}

}  // namespace

void require_time() {
  if (is_time_up()) throw OutOfBudget();
}

void require_connected(const TreeRate& rate, const CapacityGraph& graph, const Supply& supply,
                       const Router& router) {
  if (rate.capacity > 0) return;
  int from = 0;
  while (!rate.inside[from] || supply[from] == 0) ++from;
  int to = 0;
  while (rate.inside[to]) ++to;
  const auto name = [&](int rank) { return router.topology().node(graph.node[rank]).name; };
  const bool fabric = router.scope() == LinkScope::fabric;
  throw Error(ErrorKind::unsupported,
              fmt::format("there is no path from rank {} ({}) to rank {} ({}){}", from, name(from),
                          to, name(to), fabric ? " in the GPU fabric" : ""),
              fabric ? "allowing all links adds PCIe, CPU and network links" : "choose other GPUs");
}

TreeRate best_rate(const CapacityGraph& graph, const Supply& supply) {
  // Newton's method on the ratio (Dinkelbach) instead of a binary search: ask whether the best
  // ratio known is reached by flows; if not, the cut that stops them has a lower one. It ends at
  // the exact optimum after a few rounds, with the cut in hand, and all numbers stay small.
  const std::int64_t wanted_supply = total(supply);
  TreeRate best = rate_into_single_ranks(graph, supply);
  SuppliedFlow flow(graph);
  for (;;) {
    if (best.capacity == 0) return best;
    for (std::size_t arc = 0; arc < graph.arcs.size(); ++arc) {
      flow.set_arc(arc, graph.arcs[arc].capacity * best.supply);
    }
    for (int rank = 0; rank < graph.ranks; ++rank) {
      flow.set_supply(rank, supply[rank] * best.capacity);
    }
    TreeRate lower = best;
    for (int rank = 0; rank < graph.ranks; ++rank) {
      require_time();
      const std::int64_t wanted = wanted_supply * best.capacity;
      if (flow.into(rank, wanted) == wanted) continue;
      std::vector<bool> inside(graph.node.size());
      for (int vertex = 0; vertex < graph.vertices(); ++vertex) {
        inside[vertex] = flow.on_source_side(vertex);
      }
      TreeRate rate = rate_of(graph, supply, std::move(inside));
      CHECK(less(rate.capacity, rate.supply, best.capacity, best.supply));
      if (less(rate.capacity, rate.supply, lower.capacity, lower.supply)) lower = std::move(rate);
    }
    if (lower.inside == best.inside) return best;
    best = std::move(lower);
  }
}

bool reaches_all(const CapacityGraph& graph, const std::vector<std::int64_t>& arc_trees,
                 const Supply& supply) {
  SuppliedFlow flow(graph);
  for (std::size_t arc = 0; arc < arc_trees.size(); ++arc) flow.set_arc(arc, arc_trees[arc]);
  for (int rank = 0; rank < graph.ranks; ++rank) flow.set_supply(rank, supply[rank]);
  const std::int64_t wanted = total(supply);
  for (int rank = 0; rank < graph.ranks; ++rank) {
    require_time();
    if (flow.into(rank, wanted) < wanted) return false;
  }
  return true;
}

namespace {

TreeGrid grid_of(const CapacityGraph& graph, std::int64_t capacity, std::int64_t trees) {
  TreeGrid grid{capacity, trees, {}};
  grid.arc_trees.reserve(graph.arcs.size());
  for (const CapacityGraph::Arc& arc : graph.arcs) {
    grid.arc_trees.push_back(static_cast<std::int64_t>(Wide{arc.capacity} * trees / capacity));
  }
  return grid;
}

std::vector<std::int64_t> trees_of_width(const CapacityGraph& graph, double width) {
  std::vector<std::int64_t> trees;
  trees.reserve(graph.arcs.size());
  for (const CapacityGraph::Arc& arc : graph.arcs) {
    trees.push_back(static_cast<std::int64_t>(static_cast<double>(arc.capacity) / width));
  }
  return trees;
}

/// The widest trees of which every arc holds as many as given: the first arc that is full decides.
TreeGrid widen(const CapacityGraph& graph, const std::vector<std::int64_t>& arc_trees) {
  std::int64_t capacity = 0, trees = 0;
  for (std::size_t i = 0; i < graph.arcs.size(); ++i) {
    if (arc_trees[i] == 0) continue;
    if (trees == 0 || less(graph.arcs[i].capacity, arc_trees[i], capacity, trees)) {
      capacity = graph.arcs[i].capacity;
      trees = arc_trees[i];
    }
  }
  return grid_of(graph, capacity, trees);
}

Supply times(Supply supply, std::int64_t k) {
  for (std::int64_t& units : supply) units *= k;
  return supply;
}

}  // namespace

std::optional<TreeGrid> lossless_grid(const CapacityGraph& graph, const Supply& supply,
                                      const TreeRate& rate, std::int64_t k) {
  TreeGrid grid = grid_of(graph, rate.capacity, rate.supply * k);
  const bool divides = k % rate.capacity == 0;
  if (divides || reaches_all(graph, grid.arc_trees, times(supply, k))) return grid;
  return std::nullopt;
}

TreeGrid widest_grid(const CapacityGraph& graph, const Supply& supply, const TreeRate& rate,
                     std::int64_t k) {
  const Supply wanted = times(supply, k);
  double infeasible = static_cast<double>(rate.capacity) /
                      (static_cast<double>(rate.supply) * static_cast<double>(k));
  double feasible = infeasible / 2;
  std::vector<std::int64_t> best = trees_of_width(graph, feasible);
  while (!reaches_all(graph, best, wanted)) {
    infeasible = feasible;
    feasible /= 2;
    best = trees_of_width(graph, feasible);
  }
  while (feasible < infeasible * (1 - 1e-9)) {
    const double middle = (feasible + infeasible) / 2;
    std::vector<std::int64_t> trees = trees_of_width(graph, middle);
    // When no arc lost a tree there is nothing to ask.
    if (trees == best || reaches_all(graph, trees, wanted)) {
      best = std::move(trees);
      feasible = middle;
    } else {
      infeasible = middle;
    }
  }
  return widen(graph, best);
}

}  // namespace espalier
