// SPDX-License-Identifier: Apache-2.0
#include "algorithms/nccl_nodes.h"

#include <cstddef>

namespace espalier {

std::vector<std::vector<int>> nccl_ranks_by_node(const NcclMachine& machine) {
  std::vector<std::vector<int>> nodes(static_cast<std::size_t>(machine.nodes));
  for (std::size_t rank = 0; rank < machine.node_of_rank.size(); ++rank) {
    nodes[static_cast<std::size_t>(machine.node_of_rank[rank])].push_back(static_cast<int>(rank));
  }
  return nodes;
}

std::vector<int> groups_in_turn(const std::vector<int>& order) {
  std::vector<int> groups(order.size());
  for (std::size_t group = 0; group < order.size(); ++group) {
    groups[static_cast<std::size_t>(order[group])] = static_cast<int>(group);
  }
  return groups;
}

}  // namespace espalier
