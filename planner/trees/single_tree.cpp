// SPDX-License-Identifier: Apache-2.0
#include "planner/trees/single_tree.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/activity.h"
#include "core/time_limit.h"
#include "planner/packing/cheapest_tree.h"
#include "planner/trees/chains.h"

namespace espalier {
namespace {

/// Trees tried that avoid what the ones before them loaded most.
constexpr int kAvoidingTrees = 64;
/// Edges are exchanged up to this many ranks: beyond, it takes long.
constexpr int kMaxExchangedRanks = 32;

/// Time per byte of the fullest resource.
Rational fullest(const PackingProblem& problem, const Loads& loads) {
  std::size_t maximum = 0;
  const auto wide = [&](std::size_t r) -> Wide { return problem.resources[r].capacity; };
  for (std::size_t r = 1; r < loads.size(); ++r) {
    if (loads[r] * wide(maximum) > loads[maximum] * wide(r)) maximum = r;
  }
  return Rational(loads[maximum], problem.resources[maximum].capacity);
}

/// The best tree so far.
class Best {
 public:
  explicit Best(const PackingProblem& problem) : problem_(problem) {}

  bool offer(const SpanningTree& tree) {
    const Rational time = fullest(problem_, loads_of(problem_, tree));
    if (!tree_.empty() && time >= time_) return false;
    tree_ = tree;
    time_ = time;
    return true;
  }

  const SpanningTree& tree() const { return tree_; }
  TreePacking packing() const { return {{tree_}, {1 / time_}, 1 / time_, {}, 0}; }

 private:
  const PackingProblem& problem_;
  SpanningTree tree_;
  Rational time_;
};

void offer_avoiding(const PackingProblem& problem, Best& best) {
  std::vector<double> prices = prices_of_empty(problem);
  for (int round = 0; round < kAvoidingTrees; ++round) {
    if (!best.tree().empty() && is_time_up()) return;
    const SpanningTree tree =
        RankDistances<double>(problem, prices).tree(round % problem.ranks).tree;
    best.offer(tree);
    const Loads loads = loads_of(problem, tree);
    const auto time = fullest(problem, loads).convert_to<double>();
    for (std::size_t r = 0; r < loads.size(); ++r) {
      const auto capacity = static_cast<double>(problem.resources[r].capacity);
      prices[r] *= 1 + static_cast<double>(loads[r]) / capacity / time / 2;
    }
  }
}

/// Which sites of the tree hang together with the first end of edge `removed` once it is gone.
std::vector<bool> side_of(const SpanningTree& tree, std::size_t removed, int sites) {
  std::vector<bool> side(static_cast<std::size_t>(sites), false);
  side[static_cast<std::size_t>(tree[removed].from)] = true;
  for (std::size_t pass = 0; pass < tree.size(); ++pass) {
    for (std::size_t i = 0; i < tree.size(); ++i) {
      const auto from = static_cast<std::size_t>(tree[i].from);
      const auto to = static_cast<std::size_t>(tree[i].to);
      if (i != removed && side[from] != side[to]) side[from] = side[to] = true;
    }
  }
  return side;
}

/// Replaces one edge of the best tree by one that makes the fullest resource less full. False where
/// none does.
bool exchange(const PackingProblem& problem, const SiteDistances<double>& distances, Best& best) {
  const SpanningTree tree = best.tree();
  for (std::size_t removed = 0; removed < tree.size() && !is_time_up(); ++removed) {
    const std::vector<bool> side = side_of(tree, removed, problem.sites());
    for (int from = 0; from < problem.ranks; ++from) {
      for (int to = 0; to < problem.ranks; ++to) {
        const bool joins =
            side[static_cast<std::size_t>(from)] && !side[static_cast<std::size_t>(to)];
        if (!joins || distances.at(from, to).arcs == SiteDistances<double>::kUnreached) continue;
        SpanningTree changed = tree;
        changed[removed] = distances.edge(from, to);
        if (best.offer(changed)) return true;
      }
    }
  }
  return false;
}

}  // namespace

TreePacking good_single_tree(const PackingProblem& problem) {
  const Activity activity("looking for one good tree");
  const SiteDistances<double> distances(problem, prices_of_empty(problem));
  Best best(problem);
  if (const auto tree = chain(problem, node_order(problem), prices_of_empty(problem)))
    best.offer(*tree);
  offer_avoiding(problem, best);
  if (!is_time_up()) {
    for (const SpanningTree& tree : pack_spanning_trees(problem).trees) best.offer(tree);
  }
  while (problem.ranks <= kMaxExchangedRanks && exchange(problem, distances, best)) {
  }
  return best.packing();
}

}  // namespace espalier
