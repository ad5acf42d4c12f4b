// SPDX-License-Identifier: Apache-2.0
#include "ir/binary_tree.h"

#include <bit>

#include "core/check.h"

namespace espalier {
namespace {

/// Adds the subtree over positions (low, high] to `tree` and returns its top. In-order numbering
/// from 1: a node stands between its subtrees; odd positions are leaves.
int add_subtree(BinaryTree& tree, int low, int high) {
  if (low == high) return BinaryTree::kNone;
  const int top = low + static_cast<int>(std::bit_floor(static_cast<unsigned>(high - low)));
  const int left = add_subtree(tree, low, top - 1);
  const int right = add_subtree(tree, top, high);
  tree.children[static_cast<std::size_t>(top - 1)] = {left, right};
  return top - 1;
}

/// Renames the nodes: node i becomes rename(i).
template <typename Rename>
BinaryTree renamed(const BinaryTree& tree, Rename rename) {
  const auto name = [&](int node) { return node == BinaryTree::kNone ? node : rename(node); };
  BinaryTree result = tree;
  result.top = name(tree.top);
  for (std::size_t i = 0; i < tree.children.size(); ++i) {
    const auto [left, right] = tree.children[i];
    result.children[static_cast<std::size_t>(rename(static_cast<int>(i)))] = {name(left),
                                                                              name(right)};
  }
  return result;
}

}  // namespace

std::array<BinaryTree, 2> two_trees(int n) {
  CHECK(n >= 1);
  BinaryTree first;
  first.children.resize(static_cast<std::size_t>(n));
  first.top = add_subtree(first, 0, n);
  // Inner nodes of the first tree have odd numbers. Mirrored (n even) or moved by one, they are
  // even.
  const BinaryTree second =
      renamed(first, [n](int node) { return n % 2 == 0 ? n - 1 - node : (node + n - 1) % n; });
  return {first, second};
}

}  // namespace espalier
