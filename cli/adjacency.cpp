// SPDX-License-Identifier: Apache-2.0
#include "cli/adjacency.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <vector>

namespace espalier {

namespace {

/// What each node is joined to inside its host.
std::vector<std::vector<NodeId>> neighbours(const Topology& topology) {
  std::vector<std::vector<NodeId>> all(topology.nodes.size());
  for (const Link& link : topology.links) {
    if (link.link_class == LinkClass::network) continue;
    all[link.a].push_back(link.b);
    all[link.b].push_back(link.a);
  }
  return all;
}

/// The nodes between `a` and `b` on a shortest path inside the host that passes through no other
/// GPU; nothing when there is none. (Some GPUs reach their CPU over links of the GPU fabric.)
std::optional<std::vector<NodeId>> between(const Topology& topology, NodeId a, NodeId b) {
  const auto next = neighbours(topology);
  std::vector<NodeId> before(topology.nodes.size(), -1);
  std::queue<NodeId> open({a});
  before[a] = a;
  while (!open.empty() && before[b] < 0) {
    const NodeId node = open.front();
    open.pop();
    if (node != a && topology.node(node).kind == NodeKind::gpu) continue;
    for (const NodeId neighbour : next[node]) {
      if (before[neighbour] >= 0) continue;
      before[neighbour] = node;
      open.push(neighbour);
    }
  }
  if (before[b] < 0) return std::nullopt;
  std::vector<NodeId> path;
  for (NodeId node = before[b]; node != a; node = before[node]) path.push_back(node);
  return path;
}

/// Bonded links of the GPU fabric: direct ones, or those of `a` to the switches it shares with `b`.
std::string fabric_cell(const Topology& topology, NodeId a, NodeId b) {
  int direct = 0;
  int switched = 0;
  std::string kind;
  const auto next = neighbours(topology);
  for (const Link& link : topology.links) {
    if (link.link_class != LinkClass::gpu_fabric || (link.a != a && link.b != a)) continue;
    const NodeId other = link.a == a ? link.b : link.a;
    const bool shared_switch =
        topology.node(other).kind == NodeKind::nvswitch && std::ranges::count(next[other], b) > 0;
    if (other != b && !shared_switch) continue;
    (other == b ? direct : switched) += link.count;
    kind = link.kind;
  }
  const int count = direct > 0 ? direct : switched;
  if (count == 0) return {};
  const char* name = kind.starts_with("nvlink") ? "NV" : kind.starts_with("xgmi") ? "XG" : "L";
  return fmt::format("{}{}", name, count);
}

}  // namespace

std::string adjacency(const Topology& topology, NodeId a, NodeId b) {
  if (a == b) return "X";
  if (const std::string cell = fabric_cell(topology, a, b); !cell.empty()) return cell;
  if (topology.node(a).host != topology.node(b).host) return "NET";
  const auto path = between(topology, a, b);
  if (!path) return "-";
  std::vector<int> numa;
  int switches = 0;
  for (const NodeId node : *path) {
    if (topology.node(node).kind == NodeKind::cpu) numa.push_back(topology.node(node).numa);
    if (topology.node(node).kind == NodeKind::pcie_switch) ++switches;
  }
  if (numa.empty()) return switches > 1 ? "PXB" : "PIX";
  if (numa.size() == 1) return "PHB";
  const bool one_socket = std::ranges::all_of(numa, [&](int one) { return one == numa.front(); });
  return one_socket && numa.front() >= 0 ? "NODE" : "SYS";
}

}  // namespace espalier
