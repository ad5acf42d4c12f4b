// SPDX-License-Identifier: Apache-2.0
#include "topologies/path_tree.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/hash.h"
#include "core/hash_numbers.h"

namespace espalier {
namespace {

const Node& node_at(const Topology& topology, NodeId node) { return topology.node(node); }

bool is_gpu_side(NodeKind kind) { return kind == NodeKind::gpu || kind == NodeKind::nvswitch; }

}  // namespace

Net net_of(const Topology& topology, const Link& link) {
  const NodeKind a = node_at(topology, link.a).kind;
  const NodeKind b = node_at(topology, link.b).kind;
  if (link.link_class == LinkClass::network || a == NodeKind::fabric || b == NodeKind::fabric) {
    return Net::network;
  }
  if (link.link_class == LinkClass::gpu_fabric && is_gpu_side(a) && is_gpu_side(b)) {
    return Net::gpu_fabric;
  }
  return Net::host;
}

LinkGraph::LinkGraph(const Topology& topology, std::vector<double> capacity_gbps)
    : topology_(topology), capacity_gbps_(std::move(capacity_gbps)) {
  for (Adjacency& net : nets_) net.begin.assign(topology.nodes.size() + 1, 0);
  for (const Link& link : topology.links) {
    Adjacency& net = nets_[static_cast<std::size_t>(net_of(topology, link))];
    ++net.begin[static_cast<std::size_t>(link.a) + 1];
    ++net.begin[static_cast<std::size_t>(link.b) + 1];
  }
  for (Adjacency& net : nets_) {
    for (std::size_t i = 1; i < net.begin.size(); ++i) net.begin[i] += net.begin[i - 1];
    net.edges.resize(net.begin.back());
  }
  std::array<std::vector<std::size_t>, 3> next;
  for (std::size_t i = 0; i < nets_.size(); ++i) next[i] = nets_[i].begin;
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    const auto id = static_cast<LinkId>(i);
    const auto net = static_cast<std::size_t>(net_of(topology, link));
    nets_[net].edges[next[net][static_cast<std::size_t>(link.a)]++] = {link.b, {id, true}};
    nets_[net].edges[next[net][static_cast<std::size_t>(link.b)]++] = {link.a, {id, false}};
  }
}

std::span<const LinkGraph::Edge> LinkGraph::edges(Net net, NodeId node) const {
  const Adjacency& adjacency = nets_[static_cast<std::size_t>(net)];
  const std::size_t begin = adjacency.begin[static_cast<std::size_t>(node)];
  const std::size_t end = adjacency.begin[static_cast<std::size_t>(node) + 1];
  return {adjacency.edges.data() + begin, end - begin};
}

bool LinkGraph::forwards(Net net, NodeId node) const {
  const NodeKind kind = node_at(topology_, node).kind;
  switch (net) {
    case Net::gpu_fabric:
      return kind == NodeKind::nvswitch || (kind == NodeKind::gpu && topology_.gpus_forward);
    case Net::host:
      return kind == NodeKind::pcie_switch || kind == NodeKind::cpu;
    case Net::network:
      return kind == NodeKind::fabric;
  }
  return false;
}

PathTree::PathTree(const LinkGraph& graph, Net net, NodeId source) {
  // Breadth first. An end of hop count h is final once all ends of h - 1 hops were expanded, which
  // is before it is expanded itself; until then a wider path of the same length replaces it.
  HashNumbers found;  // numbers by node: those of its end
  const auto number_of = [&](NodeId node) {
    return found.number(mix64(static_cast<std::uint64_t>(node)));
  };
  number_of(source);
  ends_.push_back({source, 0, -1, std::numeric_limits<double>::infinity(), {}});
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    const End from = ends_[i];
    if (i > 0 && !graph.forwards(net, from.node)) continue;
    for (const LinkGraph::Edge& edge : graph.edges(net, from.node)) {
      const End end{edge.to, from.hops + 1, static_cast<int>(i),
                    std::min(from.gbps, graph.capacity_gbps(edge.hop.link)), edge.hop};
      const std::uint32_t number = number_of(edge.to);
      if (number == ends_.size()) {
        ends_.push_back(end);
      } else if (End& old = ends_[number]; old.hops == end.hops && old.gbps < end.gbps) {
        old = end;
      }
    }
  }
}

const PathTree::End* PathTree::find(NodeId node) const {
  const auto at =
      std::find_if(ends_.begin(), ends_.end(), [&](const End& end) { return end.node == node; });
  return at == ends_.end() ? nullptr : &*at;
}

std::vector<Hop> PathTree::path(const End& end) const {
  std::vector<Hop> hops(static_cast<std::size_t>(end.hops));
  const End* at = &end;
  for (auto hop = hops.rbegin(); hop != hops.rend(); ++hop) {
    *hop = at->last;
    at = &ends_[static_cast<std::size_t>(at->parent)];
  }
  return hops;
}

std::optional<std::vector<Hop>> path_over_one_node(const LinkGraph& graph, Net net, NodeId from,
                                                   NodeId to) {
  std::optional<std::vector<Hop>> best;
  double best_gbps = 0;
  std::vector<NodeId> middles;
  for (const LinkGraph::Edge& first : graph.edges(net, from)) {
    if (std::ranges::count(middles, first.to) > 0 || !graph.forwards(net, first.to)) continue;
    middles.push_back(first.to);
    // The widest of parallel links.
    Hop in = first.hop;
    for (const LinkGraph::Edge& other : graph.edges(net, from)) {
      const bool is_wider = graph.capacity_gbps(other.hop.link) > graph.capacity_gbps(in.link);
      if (other.to == first.to && is_wider) in = other.hop;
    }
    for (const LinkGraph::Edge& second : graph.edges(net, to)) {
      if (second.to != first.to) continue;
      const double gbps =
          std::min(graph.capacity_gbps(in.link), graph.capacity_gbps(second.hop.link));
      if (best && gbps <= best_gbps) continue;
      best_gbps = gbps;
      best = {in, {second.hop.link, !second.hop.forward}};
    }
  }
  return best;
}

std::vector<Hop> reversed(const std::vector<Hop>& hops) {
  std::vector<Hop> back(hops.rbegin(), hops.rend());
  for (Hop& hop : back) hop.forward = !hop.forward;
  return back;
}

}  // namespace espalier
