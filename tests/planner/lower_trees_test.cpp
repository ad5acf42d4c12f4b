// SPDX-License-Identifier: Apache-2.0
// Trees made lower: by arcs that are left, by arcs exchanged, and never by more arcs than there
// are.
#include "planner/trees/lower_trees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace espalier {
namespace {

using testing::UnorderedElementsAre;

/// Trees by arc, from x ranks + to.
std::vector<std::int64_t> arcs(int ranks, const std::map<std::pair<int, int>, int>& trees) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(ranks) * ranks, 0);
  for (const auto& [arc, count] : trees) result[arc.first * ranks + arc.second] = count;
  return result;
}

TEST(LowerTrees, HangsARankHigherOverAnArcThatIsLeft) {
  const auto trees = arcs(3, {{{0, 1}, 1}, {{1, 2}, 1}, {{0, 2}, 1}});
  const auto lower = lower_trees(3, trees, {{0, 1, {{0, 1}, {1, 2}}}});
  ASSERT_EQ(lower.size(), 1U);
  EXPECT_THAT(lower[0].edges, UnorderedElementsAre(std::pair(0, 1), std::pair(0, 2)));
}

/// One of two alike chains is cut off where an arc is left for one tree only.
TEST(LowerTrees, CutsTreesOfLargerWeight) {
  const auto trees = arcs(3, {{{0, 1}, 2}, {{1, 2}, 2}, {{0, 2}, 1}});
  const auto lower = lower_trees(3, trees, {{0, 2, {{0, 1}, {1, 2}}}});
  ASSERT_EQ(lower.size(), 2U);
  EXPECT_EQ(lower[0].weight, 1);
  EXPECT_EQ(lower[1].weight, 1);
}

/// Chains 0 - 1 - 2 and 1 - 0 - 2 use every arc, and may exchange those into 2.
TEST(LowerTrees, ExchangesArcs) {
  const auto trees = arcs(3, {{{0, 1}, 1}, {{1, 2}, 1}, {{1, 0}, 1}, {{0, 2}, 1}});
  const auto lower = lower_trees(3, trees, {{0, 1, {{0, 1}, {1, 2}}}, {1, 1, {{1, 0}, {0, 2}}}});
  ASSERT_EQ(lower.size(), 2U);
  EXPECT_EQ(lower[0].root, 0);
  EXPECT_THAT(lower[0].edges, UnorderedElementsAre(std::pair(0, 1), std::pair(0, 2)));
  EXPECT_EQ(lower[1].root, 1);
  EXPECT_THAT(lower[1].edges, UnorderedElementsAre(std::pair(1, 0), std::pair(1, 2)));
}

/// Random trees over arcs of which some are left: they still span, weigh as much at every root,
/// stay within the arcs, and the sum of 2^depth, what is made less, is not more.
TEST(LowerTrees, RandomTreesStayTreesWithinTheirArcs) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int ranks = 2 + static_cast<int>(random() % 9);
    std::vector<std::int64_t> trees(static_cast<std::size_t>(ranks) * ranks, 0);
    std::vector<Branching> packed;
    std::vector<std::int64_t> roots(ranks, 0);
    const auto cost = [&](const std::vector<Branching>& all) {
      double sum = 0;
      for (const Branching& tree : all) {
        std::vector<double> power(ranks, 0);
        power[tree.root] = 1;
        for (const auto& [from, to] : tree.edges) {
          EXPECT_GT(power[from], 0);  // reached before it passes on
          EXPECT_EQ(power[to], 0);    // once
          power[to] = 2 * power[from];
          sum += power[to] * static_cast<double>(tree.weight);
        }
        EXPECT_EQ(tree.edges.size() + 1, static_cast<std::size_t>(ranks));
      }
      return sum;
    };
    for (int count = 1 + static_cast<int>(random() % 6); count > 0; --count) {
      std::vector<int> order(ranks);
      for (int rank = 0; rank < ranks; ++rank) order[rank] = rank;
      std::shuffle(order.begin(), order.end(), random);
      Branching tree{order[0], 1 + static_cast<int>(random() % 3), {}};
      roots[tree.root] += tree.weight;
      for (int i = 1; i < ranks; ++i) {
        const int from = order[random() % i], to = order[i];
        tree.edges.emplace_back(from, to);
        trees[from * ranks + to] += tree.weight + (random() % 4 == 0 ? 1 : 0);
      }
      packed.push_back(tree);
    }
    const std::vector<Branching> lower = lower_trees(ranks, trees, packed);
    EXPECT_LE(cost(lower), cost(packed));
    for (const Branching& tree : lower) {
      roots[tree.root] -= tree.weight;
      for (const auto& [from, to] : tree.edges) trees[from * ranks + to] -= tree.weight;
    }
    EXPECT_THAT(roots, testing::Each(0));
    EXPECT_THAT(trees, testing::Each(testing::Ge(0)));
  }
}

}  // namespace
}  // namespace espalier
