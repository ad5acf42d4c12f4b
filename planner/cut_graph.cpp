// SPDX-License-Identifier: Apache-2.0
#include "planner/cut_graph.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <map>
#include <set>

#include "core/check.h"

namespace espalier {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<
        boost::edge_capacity_t, Capacity,
        boost::property<boost::edge_residual_capacity_t, Capacity,
                        boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

constexpr Capacity kUnlimited = Capacity{1} << 60;

bool is_fabric_end(NodeKind kind) { return kind == NodeKind::gpu || kind == NodeKind::nvswitch; }

}  // namespace

/// The same graph ready for max-flow: media as pairs of vertices, a super source and sink whose
/// arcs are opened for the ranks of one query.
struct CutGraph::FlowNetwork {
  FlowGraph graph;
  int source = 0, sink = 0;
  std::vector<Traits::edge_descriptor> from_source, to_sink;  // by rank

  Traits::edge_descriptor add(int from, int to, Capacity capacity) {
    const auto forward = boost::add_edge(from, to, graph).first;
    const auto back = boost::add_edge(to, from, graph).first;
    put(boost::edge_capacity, graph, forward, capacity);
    put(boost::edge_capacity, graph, back, 0);
    put(boost::edge_reverse, graph, forward, back);
    put(boost::edge_reverse, graph, back, forward);
    return forward;
  }
};

CutGraph::CutGraph(const Router& router, const Placement& placement)
    : router_(router), placement_(placement) {
  const Topology& topology = router.topology();
  const std::set<NodeId> members(placement.ranks.begin(), placement.ranks.end());
  std::vector<int> vertex_of(topology.nodes.size(), -1);
  for (std::size_t node = 0; node < topology.nodes.size(); ++node) {
    const NodeKind kind = topology.nodes[node].kind;
    const bool member = members.count(static_cast<NodeId>(node)) > 0;
    const bool usable = router.scope() == LinkScope::all || is_fabric_end(kind);
    if (!usable || (kind == NodeKind::gpu && !member && !topology.gpus_forward)) continue;
    vertex_of[node] = static_cast<int>(vertex_node_.size());
    vertex_node_.push_back(static_cast<NodeId>(node));
    direct_ = direct_ && member;
  }
  for (const NodeId node : placement.ranks) rank_vertex_.push_back(vertex_of[node]);

  std::map<std::string, int> shared_media;
  std::vector<int> links_of_medium;
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    const int a = vertex_of[link.a], b = vertex_of[link.b];
    if (a < 0 || b < 0) continue;
    if (router.scope() == LinkScope::fabric && link.link_class != LinkClass::gpu_fabric) continue;
    const auto capacity =
        static_cast<Capacity>(std::llround(router.capacity_gbps(static_cast<LinkId>(i)) * 1e9));
    int medium = -1;
    if (link.duplex == Duplex::half) {
      medium = static_cast<int>(medium_capacity_.size());
    } else if (link.duplex == Duplex::shared) {
      medium = shared_media.emplace(link.medium, static_cast<int>(medium_capacity_.size()))
                   .first->second;
    }
    if (medium == static_cast<int>(medium_capacity_.size())) {
      medium_capacity_.push_back(capacity);
      links_of_medium.push_back(0);
    }
    if (medium >= 0 && ++links_of_medium[medium] > 1) direct_ = false;
    arcs_.push_back({a, b, capacity, medium});
    arcs_.push_back({b, a, capacity, medium});
  }
}

CutGraph::~CutGraph() = default;

Capacity CutGraph::leaving(const std::vector<bool>& vertices, bool halve_media) const {
  Capacity sum = 0;
  std::vector<bool> counted(medium_capacity_.size(), false);
  for (const Arc& arc : arcs_) {
    if (!vertices[arc.from] || vertices[arc.to]) continue;
    if (arc.medium < 0) {
      sum += arc.capacity;
    } else if (!counted[arc.medium]) {
      counted[arc.medium] = true;
      sum += halve_media ? medium_capacity_[arc.medium] / 2 : medium_capacity_[arc.medium];
    }
  }
  return sum;
}

CutGraph::FlowNetwork& CutGraph::network(bool halve_media) const {
  auto& slot = networks_[halve_media ? 1 : 0];
  if (slot) return *slot;
  slot = std::make_unique<FlowNetwork>();
  FlowNetwork& network = *slot;
  const int vertices = static_cast<int>(vertex_node_.size());
  const int media = static_cast<int>(medium_capacity_.size());
  network.graph = FlowGraph(vertices + 2 * media + 2);
  network.source = vertices + 2 * media;
  network.sink = network.source + 1;
  const auto entry = [&](int medium) { return vertices + 2 * medium; };
  for (int medium = 0; medium < media; ++medium) {
    const Capacity capacity = medium_capacity_[medium] / (halve_media ? 2 : 1);
    network.add(entry(medium), entry(medium) + 1, capacity);
  }
  for (const Arc& arc : arcs_) {
    if (arc.medium < 0) {
      network.add(arc.from, arc.to, arc.capacity);
    } else {
      network.add(arc.from, entry(arc.medium), kUnlimited);
      network.add(entry(arc.medium) + 1, arc.to, kUnlimited);
    }
  }
  for (const int vertex : rank_vertex_) {
    network.from_source.push_back(network.add(network.source, vertex, 0));
    network.to_sink.push_back(network.add(vertex, network.sink, 0));
  }
  return network;
}

Capacity CutGraph::out_of(const std::vector<bool>& inside, bool halve_media) const {
  if (direct_) return leaving(vertices_of(inside), halve_media);
  FlowNetwork& network = this->network(halve_media);
  for (int rank = 0; rank < ranks(); ++rank) {
    put(boost::edge_capacity, network.graph, network.from_source[rank],
        inside[rank] ? kUnlimited : 0);
    put(boost::edge_capacity, network.graph, network.to_sink[rank], inside[rank] ? 0 : kUnlimited);
  }
  return boost::push_relabel_max_flow(network.graph, network.source, network.sink);
}

std::vector<Capacity> CutGraph::leaving_each(bool halve_media) const {
  std::vector<Capacity> by_vertex(vertex_node_.size(), 0);
  std::set<std::pair<int, int>> counted;  // (vertex, medium)
  for (const Arc& arc : arcs_) {
    if (arc.medium < 0) {
      by_vertex[arc.from] += arc.capacity;
    } else if (counted.emplace(arc.from, arc.medium).second) {
      by_vertex[arc.from] += medium_capacity_[arc.medium] / (halve_media ? 2 : 1);
    }
  }
  std::vector<Capacity> result;
  for (const int vertex : rank_vertex_) result.push_back(by_vertex[vertex]);
  return result;
}

CutGraph::NaturalSets CutGraph::natural_sets() const {
  const Topology& topology = router_.topology();
  const std::size_t n = vertex_node_.size();
  std::map<int, std::vector<bool>> hosts;
  std::map<std::pair<int, int>, std::vector<bool>> sockets;
  for (std::size_t v = 0; v < n; ++v) {
    const Node& node = topology.nodes[vertex_node_[v]];
    if (node.host < 0) continue;
    hosts.try_emplace(node.host, n, false).first->second[v] = true;
    if (node.numa < 0) continue;
    sockets.try_emplace({node.host, node.numa}, n, false).first->second[v] = true;
  }
  NaturalSets sets;
  for (auto& [host, set] : hosts) sets.hosts.push_back(std::move(set));
  for (auto& [socket, set] : sockets) sets.sockets.push_back(std::move(set));
  const int stride = std::max(1, ranks() / 64);
  std::vector<bool> prefix(n, false);
  for (int rank = 0; rank + 1 < ranks(); ++rank) {
    prefix[rank_vertex_[rank]] = true;
    if ((rank + 1) % stride == 0) sets.prefixes.push_back(prefix);
  }
  return sets;
}

std::vector<bool> CutGraph::ranks_of(const std::vector<bool>& vertices) const {
  std::vector<bool> result;
  for (const int vertex : rank_vertex_) result.push_back(vertices[vertex]);
  return result;
}

std::vector<bool> CutGraph::vertices_of(const std::vector<bool>& ranks) const {
  std::vector<bool> result(vertex_node_.size(), false);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank]) result[rank_vertex_[rank]] = true;
  }
  return result;
}

std::string CutGraph::rank_name(int rank) const {
  return router_.topology().nodes[placement_.ranks[rank]].name;
}

}  // namespace espalier
