// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>

#include "ir/binary_tree.h"
#include "ir/chunk.h"
#include "tests/algorithms/programs.h"

namespace espalier {
namespace {

using programs::load;
using programs::make;
using programs::request;
using programs::time_s;

/// Levels under `node`; counts the nodes seen.
int height(const BinaryTree& tree, int node, std::vector<int>& seen) {
  ++seen[static_cast<std::size_t>(node)];
  int levels = 0;
  for (const int child : tree.children[static_cast<std::size_t>(node)]) {
    if (child != BinaryTree::kNone) levels = std::max(levels, 1 + height(tree, child, seen));
  }
  return levels;
}

int floor_log2(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }

TEST(TwoTrees, SpanAllNodesAndShareNoInnerNode) {
  for (int n = 1; n <= 300; ++n) {
    SCOPED_TRACE(n);
    const std::array<BinaryTree, 2> trees = two_trees(n);
    for (const BinaryTree& tree : trees) {
      std::vector<int> seen(static_cast<std::size_t>(n), 0);
      EXPECT_EQ(height(tree, tree.top, seen), floor_log2(n));
      EXPECT_EQ(seen, std::vector<int>(static_cast<std::size_t>(n), 1));
    }
    for (int node = 0; node < n; ++node) {
      EXPECT_FALSE(trees[0].is_inner(node) && trees[1].is_inner(node)) << node;
    }
  }
}

TEST(TwoTrees, FiveNodesByHand) {
  // In-order: 3 over (1 over 0, 2) and 4; the second tree has every node one lower (0 becomes 4).
  const std::array<BinaryTree, 2> trees = two_trees(5);
  EXPECT_EQ(trees[0].top, 3);
  EXPECT_EQ(trees[0].children[3], (std::array<int, 2>{1, 4}));
  EXPECT_EQ(trees[0].children[1], (std::array<int, 2>{0, 2}));
  EXPECT_EQ(trees[1].top, 2);
  EXPECT_EQ(trees[1].children[2], (std::array<int, 2>{0, 3}));
  EXPECT_EQ(trees[1].children[0], (std::array<int, 2>{4, 1}));
}

TEST(DoubleBinaryTree, ChunksOfAllreduceFollowOneAnother) {
  // Half of the message in c chunks, floor(log2 n) levels up and as many down; the down stage never
  // holds up later chunks: (2 levels + c - 1) steps of alpha + beta / (2 c).
  constexpr double kAlpha = 3;
  constexpr double kBeta = 7;
  for (const int n : {2, 3, 4, 5, 8, 9, 16}) {
    for (const bool in_place : {false, true}) {
      for (const int c : {1, 4, 32}) {
        SCOPED_TRACE(fmt::format("n = {}, {} chunks", n, c));
        const Program whole =
            make("double_binary_tree", request(Collective::allreduce, n, 0, in_place));
        EXPECT_DOUBLE_EQ(time_s(chunk(whole, {c, 1}), kAlpha, kBeta),
                         (2 * floor_log2(n) + c - 1) * (kAlpha + kBeta / (2 * c)));
      }
    }
  }
}

TEST(DoubleBinaryTree, ARankCarriesTwoMessagesAtMost) {
  // Up: half to the parent in each tree; down: half to each of the two children as an inner node.
  for (const int n : {2, 3, 4, 5, 8, 13, 32}) {
    const programs::Load all = load(make("double_binary_tree", request(Collective::allreduce, n)));
    for (std::size_t rank = 0; rank < all.sent.size(); ++rank) {
      EXPECT_LE(all.sent[rank], 2);
      EXPECT_LE(all.received[rank], 2);
    }
  }
}

TEST(DoubleBinaryTree, BroadcastAndReduceMoveOneMessagePerRank) {
  for (const int n : {2, 3, 6, 9, 17}) {
    for (const int root : {0, n - 1}) {
      const programs::Load down =
          load(make("double_binary_tree", request(Collective::broadcast, n, root)));
      const programs::Load up =
          load(make("double_binary_tree", request(Collective::reduce, n, root)));
      for (int rank = 0; rank < n; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        EXPECT_EQ(down.received[r], rank == root ? 0 : 1);
        EXPECT_LE(down.sent[r], 1);
        EXPECT_EQ(up.sent[r], rank == root ? 0 : 1);
        EXPECT_LE(up.received[r], 1);
      }
      EXPECT_EQ(down.sent[static_cast<std::size_t>(root)], 1);
      EXPECT_EQ(up.received[static_cast<std::size_t>(root)], 1);
    }
  }
}

}  // namespace
}  // namespace espalier
