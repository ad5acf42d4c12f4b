// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "algorithms/algorithm.h"
#include "nccl/machine.h"

// The ranks of NCCL's nodes, for programs that fold inside them. Private to the room.

namespace espalier {

std::vector<std::vector<int>> nccl_ranks_by_node(const NcclMachine& machine);

/// Fold::order of ranks that move on in this order of theirs.
std::vector<int> groups_in_turn(const std::vector<int>& order);

}  // namespace espalier
