// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "planner/trees/tree_rate.h"

namespace espalier {

/// A spanning arborescence taken `weight` times. Edges (from, to) parents first.
struct Branching {
  int root = 0;
  std::int64_t weight = 0;
  std::vector<std::pair<int, int>> edges;
};

/// Some ten seconds. A tree from each of 128 ranks joined all to all takes a quarter.
inline constexpr std::int64_t kMaxBranchingWork = 1'000'000'000;

/// As many spanning trees at every rank as it supplies, that together use no arc more often than
/// `trees[from * ranks + to]`: Edmonds' disjoint branchings, grown in batches of equal trees as
/// Berczi and Frank do for several roots, breadth first and all batches at once, so that trees stay
/// low. When `max_work` is spent (arcs and trees looked at, see WorkBudget), the trees are
/// completed without asking whether there is room, and some arcs are used more often. Private to
/// this room. \pre every rank has a flow of the whole supply (then they exist).
std::vector<Branching> pack_branchings(int ranks, std::vector<std::int64_t> trees,
                                       const Supply& supply,
                                       std::int64_t max_work = kMaxBranchingWork);

}  // namespace espalier
