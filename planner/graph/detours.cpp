// SPDX-License-Identifier: Apache-2.0
#include "planner/graph/detours.h"

#include <algorithm>
#include <vector>

#include "topologies/path_tree.h"

namespace espalier {

bool may_use_network(const Router& router, const Placement& placement) {
  if (router.scope() == LinkScope::detours) return true;
  const Topology& topology = router.topology();
  if (std::ranges::none_of(topology.links, [&](const Link& link) {
        return net_of(topology, link) == Net::network;
      })) {
    return false;
  }
  std::vector<NodeId> memories = placement.ranks;
  memories.insert(memories.end(), placement.relays.begin(), placement.relays.end());
  const int host = topology.node(memories.front()).host;
  if (std::ranges::any_of(memories, [&](NodeId gpu) { return topology.node(gpu).host != host; })) {
    return true;
  }
  for (NodeId node = 0; node < static_cast<NodeId>(topology.nodes.size()); ++node) {
    const bool is_host_memory =
        topology.node(node).kind == NodeKind::cpu && topology.node(node).host == host;
    if (is_host_memory) memories.push_back(node);
  }
  for (const NodeId from : memories) {
    for (const NodeId to : memories) {
      if (from == to) continue;
      const Route* route = router.route(from, to);
      if (route != nullptr && crosses_network(topology, *route)) return true;
    }
  }
  return false;
}

}  // namespace espalier
