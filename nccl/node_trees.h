// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "ir/binary_tree.h"

namespace espalier {

/// The two trees over 0..nodes-1 by which NCCL joins nodes (NVIDIA/nccl src/graph/trees.cc): trees
/// between nodes and NVLS trees have one in the first half of their channels and the other in the
/// second. The top has one child, and below it are as many levels as the largest power of two in
/// `nodes - 1` has bits: one more than those of `two_trees` need, unless `nodes` is a power of two.
/// \pre nodes >= 1
std::array<BinaryTree, 2> nccl_node_trees(int nodes);

}  // namespace espalier
