// SPDX-License-Identifier: Apache-2.0
#include "planner/pack_allreduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "planner/equal_trees.h"
#include "planner/spanning_trees.h"

namespace espalier {
namespace {

/// Exact weights are used up to this many units of the message: programs may be cut into units.
constexpr std::int64_t kMostExactUnits = 1 << 11;
/// Trees of one weight are preferred up to this many.
constexpr std::int64_t kMostEqualTrees = 128;
/// Otherwise the fewest units, doubling up to these, that reach this much of the exact rate.
constexpr std::int64_t kFewestUnits = 64;
constexpr std::int64_t kMostUnits = 1 << 12;
const Rational kGoodEnough(998, 1000);

using Weights = std::vector<std::int64_t>;

/// Whole numbers that add up to `units`, as near to the shares as that goes: each rounded down, the
/// rest to the largest remainders.
Weights nearest_weights(const std::vector<Rational>& shares, std::int64_t units) {
  Weights weights;
  std::vector<std::pair<Rational, std::size_t>> remainders;
  std::int64_t left = units;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const Rational exact = shares[i] * units;
    const Integer whole = numerator(exact) / denominator(exact);
    weights.push_back(static_cast<std::int64_t>(whole));
    remainders.emplace_back(whole - exact, i);
    left -= weights.back();
  }
  std::sort(remainders.begin(), remainders.end());
  for (std::int64_t i = 0; i < left; ++i) ++weights[remainders[static_cast<std::size_t>(i)].second];
  return weights;
}

/// What these weights attain: the message per second when the fullest resource is full.
Rational attained_rate(const PackingProblem& problem, const TreePacking& packing,
                       const Weights& weights) {
  std::vector<std::int64_t> loads(problem.resources.size(), 0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    for (const PackedEdge& edge : packing.trees[i]) {
      for (const int resource : edge.resources) {
        const auto r = static_cast<std::size_t>(resource);
        loads[r] += weights[i] * problem.resources[r].load;
      }
    }
  }
  const std::int64_t units = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
  Rational fullest = 0;
  for (std::size_t r = 0; r < loads.size(); ++r) {
    if (loads[r] == 0) continue;
    fullest = std::max(fullest, Rational(loads[r], problem.resources[r].capacity));
  }
  return units / fullest;
}

Weights choose_weights(const PackingProblem& problem, const TreePacking& packing) {
  std::vector<Rational> shares;
  Integer exact_units = 1;
  for (const Rational& weight : packing.weights) {
    shares.push_back(weight / packing.rate);
    exact_units = lcm(exact_units, denominator(shares.back()));
  }
  if (exact_units <= kMostExactUnits) {
    return nearest_weights(shares, static_cast<std::int64_t>(exact_units));
  }
  Weights best;
  Rational best_rate = 0;
  for (std::int64_t units = kFewestUnits; units <= kMostUnits; units *= 2) {
    Weights weights = nearest_weights(shares, units);
    const Rational rate = attained_rate(problem, packing, weights);
    if (rate > best_rate) {
      best_rate = rate;
      best = std::move(weights);
    }
    if (best_rate >= packing.rate * kGoodEnough) break;
  }
  return best;
}

/// The tree hung up at its centre.
PlannedTree planned(const PackingProblem& problem, const SpanningTree& tree, std::int64_t weight) {
  PlannedTree result;
  result.root = centre_of(tree).rank;
  result.weight = weight;
  std::vector<bool> placed(tree.size(), false);
  std::vector<int> order{result.root};
  for (std::size_t next = 0; next < order.size(); ++next) {
    const int parent = order[next];
    for (std::size_t i = 0; i < tree.size(); ++i) {
      const PackedEdge& edge = tree[i];
      if (placed[i] || (edge.from != parent && edge.to != parent)) continue;
      placed[i] = true;
      TreeEdge hung{parent, edge.from == parent ? edge.to : edge.from, {}};
      for (const int vertex : edge.vertices) {
        const NodeId node = problem.node[static_cast<std::size_t>(vertex)];
        if (node >= 0) hung.path.push_back(node);
      }
      if (edge.from != parent) std::reverse(hung.path.begin(), hung.path.end());
      order.push_back(hung.child);
      result.edges.push_back(std::move(hung));
    }
  }
  return result;
}

/// \pre the ranks are connected
Forest pack(const PackingProblem& problem) {
  TreePacking packing = pack_spanning_trees(problem);
  if (auto equal = equal_trees(problem, packing, kMostEqualTrees)) packing = std::move(*equal);
  const Weights weights = choose_weights(problem, packing);
  Forest forest;
  forest.collective = Collective::allreduce;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    forest.trees.push_back(planned(problem, packing.trees[i], weights[i]));
  }
  const Rational rate = attained_rate(problem, packing, weights) * problem.lower_unit;
  forest.units = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
  forest.algbw_gbps = rounded_gbps(rate);
  forest.exact_algbw = exact_gbps(rate);
  return forest;
}

/// A plan without relays is kept unless relays make it better by more than this: exact weights may
/// have to be given up for some that are a little worse.
constexpr double kWorthRelays = 1e-6;

}  // namespace

Forest pack_allreduce(const Router& router, const Placement& placement) {
  if (placement.ranks.size() == 1) return nothing_to_send(Collective::allreduce);
  const PackingProblem problem = packing_problem(router, placement);
  if (const auto apart = unconnected_pair(problem)) {
    const auto name = [&](int rank) -> const std::string& {
      return router.topology()
          .nodes[static_cast<std::size_t>(placement.ranks[static_cast<std::size_t>(rank)])]
          .name;
    };
    throw Error(ErrorKind::unsupported,
                fmt::format("no links in scope join ranks {} ({}) and {} ({})", apart->first,
                            name(apart->first), apart->second, name(apart->second)));
  }
  Forest forest = pack(problem);
  if (placement.relays.empty()) return forest;
  Placement ranks_alone = placement;
  ranks_alone.relays.clear();
  const PackingProblem plain = packing_problem(router, ranks_alone);
  if (unconnected_pair(plain)) return forest;
  Forest without = pack(plain);
  const bool helps = forest.algbw_gbps > without.algbw_gbps * (1 + kWorthRelays);
  return helps ? forest : without;
}

}  // namespace espalier
