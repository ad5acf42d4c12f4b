// SPDX-License-Identifier: Apache-2.0
#include "planner/graph/capacity_graph.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "planner/graph/common_unit.h"
#include "planner/graph/detours.h"
#include "topologies/path_tree.h"

namespace espalier {
namespace {

/// Sums of all capacities times this many stay far from overflow.
constexpr double kMaxTotal = 1e17;

/// Steps from the sources, by node; a large number where they don't lead.
std::vector<int> distances(const Topology& topology, const std::vector<NodeId>& sources,
                           const std::vector<std::vector<NodeId>>& neighbours) {
  std::vector<int> distance(topology.nodes.size(), std::numeric_limits<int>::max());
  std::deque<NodeId> queue(sources.begin(), sources.end());
  for (const NodeId source : sources) distance[source] = 0;
  while (!queue.empty()) {
    const NodeId node = queue.front();
    queue.pop_front();
    for (const NodeId next : neighbours[node]) {
      if (distance[next] != std::numeric_limits<int>::max()) continue;
      distance[next] = distance[node] + 1;
      queue.push_back(next);
    }
  }
  return distance;
}

class GraphMaker {
 public:
  GraphMaker(const Router& router, const Placement& placement, MediaUse media, int root,
             const std::vector<RelayRole>& roles, MixedSwitches mixed)
      : router_(router),
        topology_(router.topology()),
        placement_(placement),
        media_(media),
        uses_network_(may_use_network(router, placement)) {
    find_memories(roles);
    list_links();
    find_staged_switches(mixed);
    if (media == MediaUse::outward) {
      from_root_ = distances(topology_, {placement.ranks[root]}, neighbours_);
    }
    make_vertices();
    for (const LinkId link : links_) add_link(link);
    scale();
  }

  CapacityGraph take() { return std::move(graph_); }

 private:
  static constexpr int kNone = -1;

  NodeKind kind(NodeId node) const { return topology_.node(node).kind; }
  /// A GPU that stores what it gets.
  bool is_memory(NodeId node) const { return memories_.count(node) > 0; }

  void find_memories(const std::vector<RelayRole>& roles) {
    std::vector<NodeId> forwarders;
    order_ = placement_.ranks;
    for (std::size_t i = 0; i < roles.size(); ++i) {
      if (roles[i] == RelayRole::member) order_.push_back(placement_.relays[i]);
      if (roles[i] == RelayRole::forwards) forwarders.push_back(placement_.relays[i]);
    }
    graph_.ranks = static_cast<int>(order_.size());
    graph_.relays = static_cast<int>(forwarders.size());
    order_.insert(order_.end(), forwarders.begin(), forwarders.end());
    memories_.insert(order_.begin(), order_.end());
  }

  /// The links trees may use: those Router::hop would take, between nodes that take part.
  void list_links() {
    neighbours_.resize(topology_.nodes.size());
    for (std::size_t i = 0; i < topology_.links.size(); ++i) {
      const auto id = static_cast<LinkId>(i);
      const Link& link = topology_.links[i];
      const std::optional<Hop> hop = router_.hop(link.a, link.b);
      if (!uses_network_ && net_of(topology_, link) == Net::network) continue;
      if (!hop || hop->link != id || !takes_part(link, link.a) || !takes_part(link, link.b)) {
        continue;
      }
      if (is_memory(link.a) && is_memory(link.b) && !is_own_route(link, *hop)) continue;
      links_.push_back(id);
      neighbours_[link.a].push_back(link.b);
      neighbours_[link.b].push_back(link.a);
      if (link.duplex == Duplex::shared) ++links_of_medium_[link.medium];
    }
  }

  /// Other GPUs only pass on what comes over the GPU fabric, where the machine says so.
  bool takes_part(const Link& link, NodeId node) const {
    if (kind(node) != NodeKind::gpu || is_memory(node)) return true;
    return topology_.gpus_forward && link.link_class == LinkClass::gpu_fabric;
  }

  /// A direct transfer between two memories names no node, so it goes where the router sends it.
  bool is_own_route(const Link& link, const Hop& hop) const {
    const Route* route = router_.route(link.a, link.b);
    return route != nullptr && route->hops == std::vector<Hop>{hop};
  }

  /// PCIe switches below which some pair of GPUs must not copy directly.
  void find_staged_switches(MixedSwitches mixed) {
    staged_.assign(topology_.nodes.size(), false);
    if (topology_.peer_access == Topology::PeerAccess::all) return;
    std::vector<NodeId> cpus;
    std::vector<bool> seen(topology_.nodes.size(), false);
    for (std::size_t i = 0; i < topology_.nodes.size(); ++i) {
      const auto node = static_cast<NodeId>(i);
      if (kind(node) == NodeKind::cpu) cpus.push_back(node);
      if (kind(node) != NodeKind::pcie_switch || seen[node]) continue;
      // All switches that reach each other without passing a CPU.
      std::vector<NodeId> group{node};
      std::map<int, std::set<NodeId>> gpus_of_socket;
      seen[node] = true;
      for (std::size_t next = 0; next < group.size(); ++next) {
        for (const NodeId other : neighbours_[group[next]]) {
          if (kind(other) == NodeKind::gpu) {
            gpus_of_socket[topology_.node(other).numa].insert(other);
          }
          if (kind(other) != NodeKind::pcie_switch || seen[other]) continue;
          seen[other] = true;
          group.push_back(other);
        }
      }
      if (topology_.peer_access == Topology::PeerAccess::socket) {
        const bool is_mixed = std::ranges::any_of(
            gpus_of_socket, [](const auto& socket) { return socket.second.size() > 1; });
        if (gpus_of_socket.size() < 2) continue;
        if (is_mixed && mixed == MixedSwitches::forward) continue;
      }
      for (const NodeId member : group) staged_[member] = true;
    }
    to_cpu_ = distances(topology_, cpus, neighbours_);
  }

  int add_vertex(NodeId node) {
    graph_.node.push_back(node);
    return graph_.vertices() - 1;
  }

  void make_vertices() {
    up_.assign(topology_.nodes.size(), kNone);
    for (const NodeId node : order_) up_[node] = add_vertex(node);
    for (std::size_t i = 0; i < topology_.nodes.size(); ++i) {
      const auto node = static_cast<NodeId>(i);
      if (!is_memory(node) && !neighbours_[node].empty()) up_[node] = add_vertex(node);
    }
    down_ = up_;
    for (std::size_t i = 0; i < topology_.nodes.size(); ++i) {
      const auto node = static_cast<NodeId>(i);
      const bool is_two = staged_[node] || kind(node) == NodeKind::nic;
      if (is_two && up_[node] != kNone) down_[node] = add_vertex(node);
    }
  }

  void add_arc(int from, int to, double bytes_per_s, LinkId link) {
    if (std::llround(bytes_per_s) == 0) return;
    graph_.arcs.push_back({from, to, 0, link});
    bytes_per_s_.push_back(bytes_per_s);
  }

  void add_link(LinkId id) {
    const Link& link = topology_.link(id);
    const double bytes_per_s = router_.capacity_gbps(id) * 1e9;
    double forward = bytes_per_s;
    double backward = bytes_per_s;
    if (link.duplex == Duplex::shared) {
      forward = backward = bytes_per_s / (2 * links_of_medium_.at(link.medium));
    } else if (link.duplex == Duplex::half) {
      const int a = from_root_.empty() ? 0 : from_root_[link.a];
      const int b = from_root_.empty() ? 0 : from_root_[link.b];
      forward = a == b ? bytes_per_s / 2 : a < b ? bytes_per_s : 0;
      backward = a == b ? bytes_per_s / 2 : bytes_per_s - forward;
    }
    add_direction(link.a, link.b, forward, id);
    add_direction(link.b, link.a, backward, id);
  }

  /// The upper vertex of a staged switch takes what comes from its GPUs and leads to CPUs, the
  /// lower one takes what CPUs and NICs send and leads to GPUs. The upper vertex of a NIC leads
  /// into the network, the lower one out of it: a NIC does not pass on what comes from its host.
  void add_direction(NodeId from, NodeId to, double bytes_per_s, LinkId link) {
    const bool from_staged = staged_[from];
    const bool to_staged = staged_[to];
    if (from_staged && to_staged) {
      const bool descends = to_cpu_[to] > to_cpu_[from];
      return descends ? add_arc(down_[from], down_[to], bytes_per_s, link)
                      : add_arc(up_[from], up_[to], bytes_per_s, link);
    }
    if (from_staged && kind(to) != NodeKind::gpu && kind(to) != NodeKind::cpu) {
      return join({up_[from], down_[from]}, {up_[to]}, bytes_per_s, link);
    }
    if (to_staged && kind(from) != NodeKind::gpu && kind(from) != NodeKind::cpu) {
      return join({down_[from]}, {up_[to], down_[to]}, bytes_per_s, link);
    }
    const bool is_network = net_of(topology_, topology_.link(link)) == Net::network;
    const bool tail_up = kind(from) == NodeKind::nic ? is_network : kind(to) != NodeKind::gpu;
    const bool head_up = kind(to) == NodeKind::nic ? !is_network : kind(from) == NodeKind::gpu;
    add_arc(tail_up ? up_[from] : down_[from], head_up ? up_[to] : down_[to], bytes_per_s, link);
  }

  /// One link that several vertices share: through a vertex that is no node.
  /// The side with one vertex is the link.
  void join(const std::vector<int>& tails, const std::vector<int>& heads, double bytes_per_s,
            LinkId link) {
    constexpr LinkId kNoLink = -1;
    const int middle = add_vertex(kNone);
    for (const int tail : tails)
      add_arc(tail, middle, bytes_per_s, tails.size() == 1 ? link : kNoLink);
    for (const int head : heads)
      add_arc(middle, head, bytes_per_s, tails.size() == 1 ? kNoLink : link);
  }

  /// Capacities in a common unit, so coarse that sums of them do not overflow.
  void scale() {
    const CommonUnit unit = in_common_unit(bytes_per_s_);
    const double total = std::accumulate(unit.multiples.begin(), unit.multiples.end(), 0.0);
    const double maximum = kMaxTotal / static_cast<double>(std::max(1, graph_.ranks));
    std::int64_t grain = 1;
    while (total / static_cast<double>(grain) > maximum) grain *= 10;
    graph_.unit_bytes_per_s = unit.lower * grain;
    for (std::size_t i = 0; i < graph_.arcs.size(); ++i) {
      graph_.arcs[i].capacity = unit.multiples[i] / grain;
    }
  }

  const Router& router_;
  const Topology& topology_;
  const Placement& placement_;
  const MediaUse media_;
  const bool uses_network_;
  std::vector<NodeId> order_;  ///< ranks and relays, as vertices
  std::set<NodeId> memories_;  ///< the same
  std::vector<LinkId> links_;
  std::vector<std::vector<NodeId>> neighbours_;  ///< over `links_`
  std::map<std::string, int> links_of_medium_;
  std::vector<bool> staged_;         ///< by node
  std::vector<int> to_cpu_;          ///< steps, by node; when something is staged
  std::vector<int> from_root_;       ///< steps, by node; for MediaUse::outward
  std::vector<int> up_, down_;       ///< vertex by node; differ for staged switches
  std::vector<double> bytes_per_s_;  ///< by arc
  CapacityGraph graph_;
};

}  // namespace

CapacityGraph capacity_graph(const Router& router, const Placement& placement, MediaUse media,
                             int root, const std::vector<RelayRole>& roles, MixedSwitches mixed) {
  return GraphMaker(router, placement, media, root, roles, mixed).take();
}

bool has_half_duplex_links(const Router& router) {
  const std::vector<Link>& links = router.topology().links;
  return std::any_of(links.begin(), links.end(),
                     [](const Link& link) { return link.duplex == Duplex::half; });
}

}  // namespace espalier
