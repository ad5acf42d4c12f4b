// SPDX-License-Identifier: Apache-2.0
#include "planner/cells/cell_trees.h"

#include <cstddef>

#include "ir/binary_tree.h"

namespace espalier {
namespace {

/// Node i of the tree is cell i + shift, counted around.
CellTree turned(const BinaryTree& tree, int shift) {
  const auto n = static_cast<int>(tree.children.size());
  const auto cell = [&](int node) { return (node + shift) % n; };
  CellTree result{cell(tree.top), {}};
  std::vector<int> order{tree.top};
  for (std::size_t next = 0; next < order.size(); ++next) {
    for (const int child : tree.children[static_cast<std::size_t>(order[next])]) {
      if (child == BinaryTree::kNone) continue;
      result.edges.emplace_back(cell(order[next]), cell(child));
      order.push_back(child);
    }
  }
  return result;
}

}  // namespace

std::vector<CellTree> balanced_cell_trees(int n) {
  const auto trees = two_trees(n);
  std::vector<CellTree> result;
  if (n % 2 == 0) {
    // The second is the first mirrored, where odd and even change places.
    for (int shift = 0; shift < n; shift += 2) {
      for (const BinaryTree& tree : trees) result.push_back(turned(tree, shift));
    }
  } else {
    // The second is the first turned by one.
    for (int shift = 0; shift < n; ++shift) result.push_back(turned(trees[0], (n - shift) % n));
  }
  return result;
}

CellTree cell_tree_from(int top, int n) {
  const BinaryTree tree = two_trees(n)[0];
  return turned(tree, (top - tree.top + n) % n);
}

}  // namespace espalier
