// SPDX-License-Identifier: Apache-2.0
#include "planner/inside_hosts.h"

#include <algorithm>

#include "planner/packing/fullest_link.h"

namespace espalier {

std::vector<NodeId> nodes_between(const Router& router, NodeId from, NodeId to) {
  std::vector<NodeId> path;
  for (const Hop& hop : router.route(from, to)->hops) {
    const Link& link = router.topology().link(hop.link);
    path.push_back(hop.forward ? link.b : link.a);
  }
  path.pop_back();
  return path;
}

void keep_inside_hosts(Forest& forest, const Router& router, const Placement& placement) {
  if (router.scope() != LinkScope::all) return;
  const Topology& topology = router.topology();
  bool has_changed = false;
  for (PlannedTree& tree : forest.trees) {
    for (TreeEdge& edge : tree.edges) {
      const NodeId from = site_node(placement, edge.parent);
      const NodeId to = site_node(placement, edge.child);
      const int host = topology.node(from).host;
      const bool leaves = std::ranges::any_of(
          edge.path, [&](NodeId node) { return topology.node(node).kind == NodeKind::fabric; });
      if (!leaves || topology.node(to).host != host) continue;
      const Route* route = router.route(from, to);
      if (route == nullptr || crosses_network(topology, *route)) continue;
      edge.path = nodes_between(router, from, to);
      has_changed = true;
    }
  }
  if (has_changed) set_to_fullest_link(forest, router, placement);
}

}  // namespace espalier
