// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace espalier {

/// A binary tree over 0..n-1.
struct BinaryTree {
  static constexpr int kNone = -1;
  int top = kNone;
  std::vector<std::array<int, 2>> children;  ///< by node: left and right, or kNone

  bool is_inner(int node) const {
    const auto& [left, right] = children[static_cast<std::size_t>(node)];
    return left != kNone || right != kNone;
  }
};

/// Two trees over 0..n-1 (n >= 1) of floor(log2 n) levels under the top; no node is inner in both:
/// Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and
/// scan", Parallel Computing 35(12), 2009.
std::array<BinaryTree, 2> two_trees(int n);

}  // namespace espalier
