// SPDX-License-Identifier: Apache-2.0
#include "planner/trees/lower_trees.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "core/time_limit.h"

namespace espalier {
namespace {

/// Pairs of trees and ranks that are looked at, all rounds together. More trees than that allows
/// are left as they are.
constexpr std::int64_t kMaxComparisons = std::int64_t{1} << 26;
/// Times the cost of a rank one step higher.
constexpr double kDeeper = 2;
/// Gains below this part of what is changed are rounding.
constexpr double kMinGain = 1e-9;

/// A tree of weight one, by its ranks' parents.
struct UnitTree {
  int root = 0;
  std::vector<int> parent;  ///< of the root: -1
  std::vector<int> depth;
  /// The cost of a rank and all below it as if it stood at depth 0.
  std::vector<double> cost;

  bool is_below(int rank, int top) const {
    while (rank >= 0 && rank != top) rank = parent[static_cast<std::size_t>(rank)];
    return rank == top;
  }
};

class Lowerer {
 public:
  Lowerer(int ranks, std::vector<std::int64_t> trees, const std::vector<Branching>& packed)
      : ranks_(static_cast<std::size_t>(ranks)), left_(std::move(trees)) {
    for (std::size_t depth = 0; depth <= ranks_; ++depth) {
      power_.push_back(std::pow(kDeeper, static_cast<double>(depth)));
    }
    for (const Branching& tree : packed) {
      UnitTree unit{tree.root, std::vector<int>(ranks_, -1), std::vector<int>(ranks_, 0), {}};
      for (const auto& [from, to] : tree.edges) {
        unit.parent[at(to)] = from;
        left(from, to) -= tree.weight;
      }
      measure(unit);
      trees_.insert(trees_.end(), static_cast<std::size_t>(tree.weight), unit);
    }
  }

  std::vector<Branching> run() {
    std::int64_t comparisons = kMaxComparisons;
    const auto count = static_cast<std::int64_t>(trees_.size() + ranks_);
    const std::int64_t per_rank = count * static_cast<std::int64_t>(trees_.size());
    bool is_lower = true;
    while (is_lower) {
      is_lower = false;
      for (int rank = 0; rank < static_cast<int>(ranks_); ++rank) {
        if ((comparisons -= per_rank) < 0 || is_time_up()) return merged();
        is_lower = hang_higher(rank) || is_lower;
        is_lower = exchange(rank) || is_lower;
      }
    }
    return merged();
  }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  std::int64_t& left(int from, int to) { return left_[at(from) * ranks_ + at(to)]; }

  /// Depths and costs from parents.
  void measure(UnitTree& tree) const {
    std::vector<int> order = ranks_downwards(tree);
    for (const int rank : order) {
      const int parent = tree.parent[at(rank)];
      tree.depth[at(rank)] = parent < 0 ? 0 : tree.depth[at(parent)] + 1;
    }
    tree.cost.assign(ranks_, 1);
    for (auto rank = order.rbegin(); rank != order.rend(); ++rank) {
      const int parent = tree.parent[at(*rank)];
      if (parent >= 0) tree.cost[at(parent)] += kDeeper * tree.cost[at(*rank)];
    }
  }

  /// Parents first, level by level.
  std::vector<int> ranks_downwards(const UnitTree& tree) const {
    std::vector<std::vector<int>> children(ranks_);
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      if (tree.parent[rank] >= 0) children[at(tree.parent[rank])].push_back(static_cast<int>(rank));
    }
    std::vector<int> order{tree.root};
    for (std::size_t next = 0; next < order.size(); ++next) {
      const std::vector<int>& below = children[at(order[next])];
      order.insert(order.end(), below.begin(), below.end());
    }
    return order;
  }

  /// What it costs more to have the rank below `parent` than where it is.
  double change(const UnitTree& tree, int rank, int parent) const {
    return tree.cost[at(rank)] *
           (power_[at(tree.depth[at(parent)] + 1)] - power_[at(tree.depth[at(rank)])]);
  }
  double least_gain(const UnitTree& tree, int rank) const {
    return kMinGain * tree.cost[at(rank)] * power_[at(tree.depth[at(rank)])];
  }

  void hang(UnitTree& tree, int rank, int parent) {
    tree.parent[at(rank)] = parent;
    measure(tree);
  }

  /// Below the highest of the ranks from which an arc has trees left.
  bool hang_higher(int rank) {
    bool is_lower = false;
    for (UnitTree& tree : trees_) {
      const int old = tree.parent[at(rank)];
      if (old < 0) continue;
      int best = old;
      for (int parent = 0; parent < static_cast<int>(ranks_); ++parent) {
        if (tree.depth[at(parent)] < tree.depth[at(best)] && left(parent, rank) > 0) best = parent;
      }
      if (best == old) continue;  // what is higher than its parent is not below it
      ++left(old, rank);
      --left(best, rank);
      hang(tree, rank, best);
      is_lower = true;
    }
    return is_lower;
  }

  bool exchange(int rank) {
    bool is_lower = false;
    for (std::size_t i = 0; i < trees_.size(); ++i) {
      UnitTree& a = trees_[i];
      if (a.root == rank) continue;
      for (std::size_t j = i + 1; j < trees_.size(); ++j) {
        UnitTree& b = trees_[j];
        const int from_a = a.parent[at(rank)], from_b = b.parent[at(rank)];
        if (from_b < 0 || from_a == from_b) continue;
        const double gain = -change(a, rank, from_b) - change(b, rank, from_a);
        if (gain <= least_gain(a, rank) + least_gain(b, rank)) continue;
        if (a.is_below(from_b, rank) || b.is_below(from_a, rank)) continue;
        hang(a, rank, from_b);
        hang(b, rank, from_a);
        is_lower = true;
      }
    }
    return is_lower;
  }

  std::vector<Branching> merged() const {
    std::map<std::pair<int, std::vector<int>>, std::size_t> places;
    std::vector<Branching> result;
    for (const UnitTree& tree : trees_) {
      const auto [place, is_new] = places.emplace(std::pair(tree.root, tree.parent), result.size());
      if (is_new) {
        Branching branching{tree.root, 0, {}};
        for (const int rank : ranks_downwards(tree)) {
          if (rank != tree.root) branching.edges.emplace_back(tree.parent[at(rank)], rank);
        }
        result.push_back(std::move(branching));
      }
      ++result[place->second].weight;
    }
    return result;
  }

  const std::size_t ranks_;
  std::vector<std::int64_t> left_;  ///< by from x ranks + to
  std::vector<double> power_;       ///< by depth
  std::vector<UnitTree> trees_;
};

}  // namespace

std::vector<Branching> lower_trees(int ranks, const std::vector<std::int64_t>& trees,
                                   const std::vector<Branching>& packed) {
  const auto add = [](std::int64_t sum, const Branching& tree) { return sum + tree.weight; };
  const std::int64_t units = std::accumulate(packed.begin(), packed.end(), std::int64_t{0}, add);
  if (units > kMaxComparisons / ranks / units) return packed;
  return Lowerer(ranks, trees, packed).run();
}

}  // namespace espalier
