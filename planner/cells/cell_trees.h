// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

// Private to the room.

namespace espalier {

/// A tree over cells 0..n-1: edges (parent, child), parents first.
struct CellTree {
  int top = 0;
  std::vector<std::pair<int, int>> edges;
};

/// Binary trees over n cells (n >= 2), n of them, such that each cell has as many neighbours as any
/// other, over all of them together: 2 (n - 1). In the first two, and in any two that follow, no
/// cell has more than four.
std::vector<CellTree> balanced_cell_trees(int n);

/// The first of them with the cells renumbered around, so that `top` is on top.
CellTree cell_tree_from(int top, int n);

}  // namespace espalier
