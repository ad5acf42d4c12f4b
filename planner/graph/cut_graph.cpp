// SPDX-License-Identifier: Apache-2.0
#include "planner/graph/cut_graph.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/check.h"
#include "planner/graph/detours.h"
#include "topologies/path_tree.h"

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
/// What all links have in one direction, which check_topology sees to: flows sum up to 63 times as
/// much (see bounds.cpp: it searches for least cuts of up to 64 ranks).
constexpr Capacity kMaxCapacity = Capacity{1} << 57;

bool is_fabric_end(NodeKind kind) { return kind == NodeKind::gpu || kind == NodeKind::nvswitch; }

}  // namespace

/// The same graph ready for max-flow: media as pairs of vertices, a super source and sink whose
/// arcs are opened for the ranks of one query.
struct CutGraph::FlowNetwork {
  FlowGraph graph;
  int source = 0, sink = 0;
  std::vector<Traits::edge_descriptor> from_source, to_sink;  // by rank
  struct ScaledLink {
    Traits::edge_descriptor edge;
    Capacity capacity;
    bool is_medium;
  };
  std::vector<ScaledLink> links;
  std::pair<std::int64_t, std::int64_t> scale{1, 1};

  explicit FlowNetwork(std::size_t vertices) : graph(vertices) {}

  Traits::edge_descriptor add(int from, int to, Capacity capacity) {
    const auto forward = boost::add_edge(from, to, graph).first;
    const auto back = boost::add_edge(to, from, graph).first;
    put(boost::edge_capacity, graph, forward, capacity);
    put(boost::edge_capacity, graph, back, 0);
    put(boost::edge_reverse, graph, forward, back);
    put(boost::edge_reverse, graph, back, forward);
    return forward;
  }

  /// An arc whose capacity is scaled.
  void add_link(int from, int to, Capacity capacity, bool is_medium) {
    links.push_back({add(from, to, capacity), capacity, is_medium});
  }

  /// Links of their own by `full`, media by `shared`.
  void scale_links(std::int64_t full, std::int64_t shared) {
    if (scale == std::pair(full, shared)) return;
    scale = {full, shared};
    for (const auto& [edge, capacity, is_medium] : links) {
      put(boost::edge_capacity, graph, edge, capacity * (is_medium ? shared : full));
    }
  }

  void open(int rank, Capacity supply, Capacity demand) {
    put(boost::edge_capacity, graph, from_source[rank], supply);
    put(boost::edge_capacity, graph, to_sink[rank], demand);
  }

  Capacity flow() { return boost::push_relabel_max_flow(graph, source, sink); }

  /// After `flow`: the vertices that could be reached with more.
  std::vector<bool> source_side() const {
    const auto residual = get(boost::edge_residual_capacity, graph);
    std::vector<bool> reached(num_vertices(graph), false);
    std::vector<int> open{source};
    reached[source] = true;
    for (std::size_t i = 0; i < open.size(); ++i) {
      for (auto [edge, end] = out_edges(open[i], graph); edge != end; ++edge) {
        const int next = static_cast<int>(target(*edge, graph));
        if (get(residual, *edge) == 0 || reached[next]) continue;
        reached[next] = true;
        open.push_back(next);
      }
    }
    return reached;
  }
};

CutGraph::CutGraph(const Router& router, const Placement& placement) : router_(router) {
  const Topology& topology = router.topology();
  std::vector<NodeId> sites = placement.ranks;
  sites.insert(sites.end(), placement.relays.begin(), placement.relays.end());
  const std::set<NodeId> members(sites.begin(), sites.end());
  ranks_ = static_cast<int>(placement.ranks.size());
  std::vector<int> vertex_of(topology.nodes.size(), -1);
  for (std::size_t node = 0; node < topology.nodes.size(); ++node) {
    const NodeKind kind = topology.node(node).kind;
    const bool member = members.count(static_cast<NodeId>(node)) > 0;
    const bool usable = router.scope() != LinkScope::fabric || is_fabric_end(kind);
    if (!usable || (kind == NodeKind::gpu && !member && !topology.gpus_forward)) continue;
    vertex_of[node] = static_cast<int>(vertex_node_.size());
    vertex_node_.push_back(static_cast<NodeId>(node));
    direct_ = direct_ && member;
  }
  vertex_site_.assign(vertex_node_.size(), -1);
  for (const NodeId node : sites) {
    vertex_site_[static_cast<std::size_t>(vertex_of[node])] = static_cast<int>(site_vertex_.size());
    site_vertex_.push_back(vertex_of[node]);
  }

  const bool uses_network = may_use_network(router, placement);
  std::map<std::string, int> shared_media;
  std::vector<int> links_of_medium;
  Capacity total = 0;
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    const int a = vertex_of[link.a], b = vertex_of[link.b];
    if (a < 0 || b < 0) continue;
    if (router.scope() == LinkScope::fabric && link.link_class != LinkClass::gpu_fabric) continue;
    if (!uses_network && net_of(topology, link) == Net::network) continue;
    const auto capacity =
        static_cast<Capacity>(std::llround(router.capacity_gbps(static_cast<LinkId>(i)) * 1e9));
    total += capacity;
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
    arcs_.push_back({a, b, capacity, medium, {static_cast<LinkId>(i), true}});
    arcs_.push_back({b, a, capacity, medium, {static_cast<LinkId>(i), false}});
  }
  CHECK(total <= kMaxCapacity);
  arcs_of_.resize(vertex_node_.size());
  for (std::size_t arc = 0; arc < arcs_.size(); ++arc) {
    arcs_of_[static_cast<std::size_t>(arcs_[arc].from)].push_back(static_cast<int>(arc));
  }
}

CutGraph::~CutGraph() = default;

template <typename Count>
void CutGraph::count_leaving(const std::vector<bool>& vertices, Count count) const {
  std::vector<bool> counted(medium_capacity_.size(), false);
  for (std::size_t vertex = 0; vertex < vertices.size(); ++vertex) {
    if (!vertices[vertex]) continue;
    for (const int id : arcs_of_[vertex]) {
      const Arc& arc = arcs_[static_cast<std::size_t>(id)];
      if (vertices[arc.to] || (arc.medium >= 0 && counted[arc.medium])) continue;
      if (arc.medium >= 0) counted[arc.medium] = true;
      count(arc);
    }
  }
}

Capacity CutGraph::leaving(const std::vector<bool>& vertices) const {
  Capacity sum = 0;
  count_leaving(vertices, [&](const Arc& arc) { sum += arc.capacity; });
  return sum;
}

Capacity CutGraph::around(const std::vector<bool>& vertices) const {
  Capacity sum = 0;
  count_leaving(vertices,
                [&](const Arc& arc) { sum += arc.medium < 0 ? 2 * arc.capacity : arc.capacity; });
  return sum;
}

std::vector<CutGraph::Arc> CutGraph::arcs_leaving(const std::vector<bool>& vertices) const {
  std::vector<Arc> arcs;
  count_leaving(vertices, [&](const Arc& arc) { arcs.push_back(arc); });
  return arcs;
}

CutGraph::FlowNetwork& CutGraph::network() const {
  if (network_) return *network_;
  const int vertices = static_cast<int>(vertex_node_.size());
  const int media = static_cast<int>(medium_capacity_.size());
  network_ = std::make_unique<FlowNetwork>(vertices + 2 * media + 2);
  FlowNetwork& network = *network_;
  network.source = vertices + 2 * media;
  network.sink = network.source + 1;
  const auto entry = [&](int medium) { return vertices + 2 * medium; };
  for (int medium = 0; medium < media; ++medium) {
    network.add_link(entry(medium), entry(medium) + 1, medium_capacity_[medium],
                     /*is_medium=*/true);
  }
  for (const Arc& arc : arcs_) {
    if (arc.medium < 0) {
      network.add_link(arc.from, arc.to, arc.capacity, /*is_medium=*/false);
    } else {
      network.add(arc.from, entry(arc.medium), kUnlimited);
      network.add(entry(arc.medium) + 1, arc.to, kUnlimited);
    }
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    const int vertex = site_vertex_[static_cast<std::size_t>(rank)];
    network.from_source.push_back(network.add(network.source, vertex, 0));
    network.to_sink.push_back(network.add(vertex, network.sink, 0));
  }
  return network;
}

std::vector<bool> CutGraph::source_side(const FlowNetwork& network) const {
  std::vector<bool> side = network.source_side();
  side.resize(vertex_node_.size());
  return side;
}

CutGraph::Cut CutGraph::out_of(const std::vector<bool>& ranks) const {
  FlowNetwork& network = this->network();
  network.scale_links(1, 1);
  for (int rank = 0; rank < this->ranks(); ++rank) {
    network.open(rank, ranks[rank] ? kUnlimited : 0, ranks[rank] ? 0 : kUnlimited);
  }
  const Capacity capacity = network.flow();
  return {capacity, source_side(network)};
}

CutGraph::Cut CutGraph::between(int inside, int outside) const {
  return least_between(inside, outside, 1);
}

CutGraph::Cut CutGraph::around_between(int inside, int outside) const {
  return least_between(inside, outside, 2);
}

/// `full`: how often a link of its own counts.
CutGraph::Cut CutGraph::least_between(int inside, int outside, int full) const {
  FlowNetwork& network = this->network();
  network.scale_links(full, 1);
  for (int rank = 0; rank < ranks(); ++rank) {
    network.open(rank, rank == inside ? kUnlimited : 0, rank == outside ? kUnlimited : 0);
  }
  const Capacity capacity = network.flow();
  return {capacity, source_side(network)};
}

CutGraph::Cut CutGraph::least_priced(int outside, Capacity price, std::int64_t weight) const {
  FlowNetwork& network = this->network();
  network.scale_links(weight, weight);
  for (int rank = 0; rank < ranks(); ++rank) {
    network.open(rank, rank == outside ? 0 : price, rank == outside ? kUnlimited : 0);
  }
  // The flow is the least, over the cuts, of weight * capacity + price * ranks outside.
  const Capacity flow = network.flow();
  if (flow >= price * (ranks() - 1)) return {0, std::vector<bool>(vertex_node_.size(), false)};
  Cut cut{0, source_side(network)};
  const std::int64_t held = ranks_in(cut.inside);
  cut.capacity = (flow - price * (ranks() - 1 - held)) / weight;
  return cut;
}

std::vector<Capacity> CutGraph::each(int full) const {
  std::vector<Capacity> by_vertex(vertex_node_.size(), 0);
  std::set<std::pair<int, int>> counted;  // (vertex, medium)
  for (const Arc& arc : arcs_) {
    if (arc.medium < 0) {
      by_vertex[arc.from] += full * arc.capacity;
    } else if (counted.emplace(arc.from, arc.medium).second) {
      by_vertex[arc.from] += medium_capacity_[arc.medium];
    }
  }
  std::vector<Capacity> result;
  for (const int vertex : site_vertex_) result.push_back(by_vertex[vertex]);
  return result;
}

std::vector<Capacity> CutGraph::leaving_each() const { return each(1); }
std::vector<Capacity> CutGraph::around_each() const { return each(2); }

CutGraph::NaturalSets CutGraph::natural_sets() const {
  const Topology& topology = router_.topology();
  const std::size_t n = vertex_node_.size();
  std::map<int, std::vector<int>> hosts;
  std::map<std::pair<int, int>, std::vector<int>> sockets;
  for (std::size_t v = 0; v < n; ++v) {
    const Node& node = topology.node(vertex_node_[v]);
    if (node.host < 0) continue;
    hosts[node.host].push_back(static_cast<int>(v));
    if (node.numa < 0) continue;
    sockets[{node.host, node.numa}].push_back(static_cast<int>(v));
  }
  NaturalSets sets;
  for (auto& [host, set] : hosts) sets.hosts.push_back(std::move(set));
  for (auto& [socket, set] : sockets) sets.sockets.push_back(std::move(set));
  const int stride = std::max(1, ranks() / 64);
  std::vector<bool> prefix(n, false);
  for (int rank = 0; rank + 1 < ranks(); ++rank) {
    prefix[site_vertex_[rank]] = true;
    if ((rank + 1) % stride == 0) sets.prefixes.push_back(prefix);
  }
  return sets;
}

std::vector<CutGraph::Summary> CutGraph::summaries(
    const std::vector<std::vector<int>>& sets) const {
  constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::size_t> set_of_vertex(vertex_node_.size(), kNone);
  std::vector<std::size_t> counted_for(medium_capacity_.size(), kNone);
  std::vector<Summary> all(sets.size());
  for (std::size_t set = 0; set < sets.size(); ++set) {
    for (const int vertex : sets[set]) set_of_vertex[static_cast<std::size_t>(vertex)] = set;
    Summary& one = all[set];
    for (const int vertex : sets[set]) {
      const int site = site_of(vertex);
      if (site >= 0) ++one.sites;
      if (site >= 0 && site < ranks_) ++one.ranks;
      for (const int id : arcs_of_[static_cast<std::size_t>(vertex)]) {
        const Arc& arc = arcs_[static_cast<std::size_t>(id)];
        if (set_of_vertex[static_cast<std::size_t>(arc.to)] == set) continue;
        const bool has_medium = arc.medium >= 0;
        if (has_medium && std::exchange(counted_for[arc.medium], set) == set) continue;
        one.leaving += arc.capacity;
        one.around += has_medium ? arc.capacity : 2 * arc.capacity;
      }
    }
  }
  return all;
}

std::vector<bool> CutGraph::set_of(const std::vector<int>& vertices) const {
  std::vector<bool> set(vertex_node_.size(), false);
  for (const int vertex : vertices) set[static_cast<std::size_t>(vertex)] = true;
  return set;
}

std::vector<bool> CutGraph::sites_of(const std::vector<bool>& vertices) const {
  std::vector<bool> result;
  for (const int vertex : site_vertex_) result.push_back(vertices[vertex]);
  return result;
}

std::vector<bool> CutGraph::vertices_of(const std::vector<bool>& sites) const {
  std::vector<bool> result(vertex_node_.size(), false);
  for (std::size_t site = 0; site < sites.size(); ++site) {
    if (sites[site]) result[static_cast<std::size_t>(site_vertex_[site])] = true;
  }
  return result;
}

std::int64_t CutGraph::ranks_in(const std::vector<bool>& vertices) const {
  return std::count_if(site_vertex_.begin(), site_vertex_.begin() + ranks_,
                       [&](int vertex) { return vertices[static_cast<std::size_t>(vertex)]; });
}

std::string CutGraph::site_name(int site) const {
  const int vertex = site_vertex_[static_cast<std::size_t>(site)];
  return router_.topology().node(vertex_node_[static_cast<std::size_t>(vertex)]).name;
}

}  // namespace espalier
