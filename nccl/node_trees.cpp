// SPDX-License-Identifier: Apache-2.0
#include "nccl/node_trees.h"

#include <bit>
#include <cstddef>

#include "core/check.h"

namespace espalier {
namespace {

/// Node 0 is above all others. A node whose lowest bit is 2^k has children 2^(k-1) to either side;
/// where there is no such node above, the next nearer one that there is.
BinaryTree first_tree(int nodes) {
  BinaryTree tree;
  tree.top = 0;
  tree.children.resize(static_cast<std::size_t>(nodes), {BinaryTree::kNone, BinaryTree::kNone});
  if (nodes > 1) {
    tree.children[0][0] = static_cast<int>(std::bit_floor(static_cast<unsigned>(nodes - 1)));
  }
  for (int node = 1; node < nodes; ++node) {
    int away = (node & -node) / 2;
    if (away == 0) continue;
    auto& [left, right] = tree.children[static_cast<std::size_t>(node)];
    left = node - away;
    while (away > 0 && node + away >= nodes) away /= 2;
    if (away > 0) right = node + away;
  }
  return tree;
}

}  // namespace

std::array<BinaryTree, 2> nccl_node_trees(int nodes) {
  CHECK(nodes >= 1);
  const BinaryTree first = first_tree(nodes);
  // Mirrored, or moved by one if the number is odd.
  const auto renamed = [nodes](int node) {
    if (node == BinaryTree::kNone) return node;
    return nodes % 2 == 0 ? nodes - 1 - node : (node + 1) % nodes;
  };
  BinaryTree second = first;
  second.top = renamed(first.top);
  for (int node = 0; node < nodes; ++node) {
    const auto [left, right] = first.children[static_cast<std::size_t>(node)];
    second.children[static_cast<std::size_t>(renamed(node))] = {renamed(left), renamed(right)};
  }
  return {first, second};
}

}  // namespace espalier
