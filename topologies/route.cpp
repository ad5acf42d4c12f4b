// SPDX-License-Identifier: Apache-2.0
#include "topologies/route.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/check.h"
#include "core/hash.h"
#include "core/hash_numbers.h"
#include "core/words.h"
#include "topologies/fabric.h"
#include "topologies/link_rates.h"
#include "topologies/path_tree.h"

namespace espalier {
namespace {

std::vector<Hop> joined(std::vector<Hop> first, const std::vector<Hop>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Where a node enters the network between hosts, and how it gets there.
struct Access {
  NodeId at = 0;  ///< a NIC, or the node itself when it is wired to the network
  double gbps = 0;
  std::vector<Hop> hops;
};

/// The ways of one node into the network, nearest first, then widest, then lowest id.
struct AccessList {
  std::vector<Access> all;
  std::size_t equal = 0;      ///< how many at the front are as near and as wide as the first
  std::size_t preferred = 0;  ///< the one of these that this node uses
  bool ready = false;
};

/// A route but for what it costs.
struct Way {
  RouteKind kind = RouteKind::local;
  std::vector<Hop> hops;
};

/// Those between pairs of nodes, as far as somebody has asked.
class KnownWays {
 public:
  /// `find()` is asked where it is not known. Nothing: there is none.
  template <class Find>
  const std::optional<Way>& get(std::uint64_t pair, Find&& find) {
    std::uint32_t number = numbers_.find(pair);
    if (number == HashNumbers::kNone) {
      ways_.push_back(find());
      number = numbers_.number(pair);
    }
    return ways_[number];
  }

 private:
  HashNumbers numbers_;
  std::deque<std::optional<Way>> ways_;  ///< by number
};

/// Those that combine.
struct CombiningSwitches {
  std::vector<NodeId> all;
  bool may_join = true;  ///< the GPU fabric of some host goes on in another
};

/// Whether nodes and links are the same as far as ways depend on them, but for the links' rates.
bool are_laid_out_alike(const Topology& a, const Topology& b) {
  if (&a == &b) return true;
  const auto is_same_node = [](const Node& one, const Node& other) {
    return one.kind == other.kind && one.host == other.host && one.numa == other.numa;
  };
  const auto is_same_link = [](const Link& one, const Link& other) {
    return one.a == other.a && one.b == other.b && one.link_class == other.link_class;
  };
  return a.peer_access == b.peer_access && a.gpus_forward == b.gpus_forward &&
         std::ranges::equal(a.nodes, b.nodes, is_same_node) &&
         std::ranges::equal(a.links, b.links, is_same_link);
}

std::uint64_t pair_key(NodeId a, NodeId b) {
  return mix64(static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 |
               static_cast<std::uint32_t>(b));
}

}  // namespace

std::string_view to_string(LinkScope links) {
  switch (links) {
    case LinkScope::all:
      return "all";
    case LinkScope::fabric:
      return "fabric";
    case LinkScope::detours:
      return "detours";
  }
  CHECK(false);
}

std::span<const LinkScope> all_link_scopes() {
  static constexpr LinkScope kAll[] = {LinkScope::all, LinkScope::fabric, LinkScope::detours};
  return kAll;
}

struct Router::Impl {
  Impl(const Topology& machine, std::shared_ptr<const Profile> in_use, LinkScope links)
      : topology(machine),
        shared_profile(std::move(in_use)),
        profile(*shared_profile),
        scope(links) {}

  const Node& node(NodeId id) const { return topology.node(id); }
  bool is_gpu(NodeId id) const { return node(id).kind == NodeKind::gpu; }

  const LinkRates& rates() const;
  double gbps(LinkId link) const { return rates().gbps[static_cast<std::size_t>(link)]; }
  const LinkGraph& graph() const;
  const std::vector<LinkId>& by_rate() const;
  const CombiningSwitches& combining() const;
  const PathTree& tree(Net net, NodeId source);
  std::optional<std::vector<Hop>> path(Net net, NodeId from, NodeId to);
  std::optional<std::vector<Hop>> through_cpu(NodeId from, NodeId to);
  std::optional<std::vector<Hop>> through_network(NodeId from, NodeId to);
  void list_accesses(NodeId id, AccessList& list);
  const AccessList& access_list(NodeId id);
  bool may_peer(NodeId from, NodeId to) const;
  bool passes_nics(const std::vector<Hop>& hops) const;
  double hop_more_s(const Hop& last) const;
  Route finish(RouteKind kind, std::vector<Hop> hops, bool staged) const;
  std::optional<Way> find_way(NodeId from, NodeId to);
  std::optional<Route> compute(NodeId from, NodeId to);
  std::optional<Hop> hop(NodeId from, NodeId to) const;
  std::optional<Route> compute_via(const Router& router, NodeId from, NodeId to, NodeId via) const;
  std::optional<Route> compute_along(const Router& router, NodeId from, NodeId to,
                                     const std::vector<NodeId>& vias) const;
  bool leads_to_one_switch(const Route& route) const;
  std::optional<NodeId> find_switch(const Router& router, const std::vector<NodeId>& nodes,
                                    std::optional<NodeId> named) const;

  const Topology& topology;
  const std::shared_ptr<const Profile> shared_profile;
  const Profile& profile;
  const LinkScope scope;
  std::shared_ptr<KnownWays> ways;  ///< null: shared with nobody, and kept in `routes` only
  mutable std::optional<LinkRates> known_rates;
  // Found when first asked for: a machine has a router for each protocol, of which few are asked.
  mutable std::optional<LinkGraph> known_graph;
  mutable std::vector<LinkId> known_by_rate;  ///< links from the slowest to the fastest
  mutable std::optional<CombiningSwitches> known_switches;
  std::unordered_map<int, std::vector<NodeId>> of_host;  ///< once accesses are
  std::array<std::unordered_map<NodeId, PathTree>, 3> trees;
  std::vector<AccessList> accesses;  ///< by node
  // Node-based maps: a reference to an entry stays valid when others are added.
  HashNumbers pairs;                        ///< of nodes, by pair_key
  std::deque<std::optional<Route>> routes;  ///< by number; they stay where they are
  std::map<std::vector<NodeId>, std::unordered_map<std::uint64_t, std::optional<Route>>> via_routes;
  /// Router::combining_switch, by the switch named and the nodes.
  std::map<std::pair<NodeId, std::vector<NodeId>>, std::optional<NodeId>> switches;
  /// Paths as text, so that a text met in a million ops is taken apart once.
  std::map<std::string, std::vector<NodeId>, std::less<>> via_texts;
};

const LinkRates& Router::Impl::rates() const {
  if (!known_rates) known_rates = link_rates(topology, profile);
  return *known_rates;
}

const LinkGraph& Router::Impl::graph() const {
  if (!known_graph) known_graph.emplace(topology, rates().gbps);
  return *known_graph;
}

const std::vector<LinkId>& Router::Impl::by_rate() const {
  if (known_by_rate.empty()) {
    known_by_rate.resize(topology.links.size());
    std::iota(known_by_rate.begin(), known_by_rate.end(), LinkId{0});
    std::ranges::sort(known_by_rate, {}, [this](LinkId link) { return gbps(link); });
  }
  return known_by_rate;
}

const CombiningSwitches& Router::Impl::combining() const {
  if (!known_switches) {
    CombiningSwitches& made = known_switches.emplace();
    for (NodeId id = 0; id < static_cast<NodeId>(topology.nodes.size()); ++id) {
      if (node(id).combines) made.all.push_back(id);
    }
    made.may_join = may_join_hosts(topology);
  }
  return *known_switches;
}

const PathTree& Router::Impl::tree(Net net, NodeId source) {
  auto& known = trees[static_cast<std::size_t>(net)];
  const auto at = known.find(source);
  if (at != known.end()) return at->second;
  return known.emplace(source, PathTree(graph(), net, source)).first->second;
}

std::optional<std::vector<Hop>> Router::Impl::path(Net net, NodeId from, NodeId to) {
  // Neighbours without growing a tree, so that a ring of a thousand GPUs costs a thousand steps.
  for (const LinkGraph::Edge& edge : graph().edges(net, from)) {
    if (edge.to == to) return std::vector<Hop>{edge.hop};
  }
  // Nor where one node is between: thousands of NICs at a switch would have trees of thousands.
  if (auto hops = path_over_one_node(graph(), net, from, to)) return hops;
  const PathTree& paths = tree(net, from);
  const PathTree::End* end = paths.find(to);
  if (end == nullptr) return std::nullopt;
  return paths.path(*end);
}

std::optional<std::vector<Hop>> Router::Impl::through_cpu(NodeId from, NodeId to) {
  // Up from both ends: the way down is the way up of the other end, turned round.
  const PathTree& up = tree(Net::host, from);
  const PathTree& down = tree(Net::host, to);
  const PathTree::End* best_up = nullptr;
  const PathTree::End* best_down = nullptr;
  for (const PathTree::End& first : up.ends()) {
    if (node(first.node).kind != NodeKind::cpu) continue;
    const PathTree::End* second = down.find(first.node);
    if (second == nullptr) continue;
    const auto rank = [](const PathTree::End& a, const PathTree::End& b) {
      return std::tuple(a.hops + b.hops, -std::min(a.gbps, b.gbps), a.node);
    };
    if (best_up == nullptr || rank(first, *second) < rank(*best_up, *best_down)) {
      best_up = &first;
      best_down = second;
    }
  }
  if (best_up == nullptr) return std::nullopt;
  return joined(up.path(*best_up), reversed(down.path(*best_down)));
}

void Router::Impl::list_accesses(NodeId id, AccessList& list) {
  const PathTree& host = tree(Net::host, id);
  for (const PathTree::End& end : host.ends()) {
    const bool enters = end.node == id || node(end.node).kind == NodeKind::nic;
    if (!enters || graph().edges(Net::network, end.node).empty()) continue;
    list.all.push_back({end.node, end.gbps, host.path(end)});
  }
  const auto rank = [](const Access& access) {
    return std::tuple(access.hops.size(), -access.gbps, access.at);
  };
  std::sort(list.all.begin(), list.all.end(),
            [&](const Access& a, const Access& b) { return rank(a) < rank(b); });
  while (list.equal < list.all.size() &&
         list.all[list.equal].hops.size() == list.all.front().hops.size() &&
         list.all[list.equal].gbps == list.all.front().gbps) {
    ++list.equal;
  }
}

const AccessList& Router::Impl::access_list(NodeId id) {
  if (accesses.empty()) {
    accesses.resize(topology.nodes.size());
    for (NodeId one = 0; one < static_cast<NodeId>(topology.nodes.size()); ++one) {
      of_host[node(one).host].push_back(one);
    }
  }
  AccessList& list = accesses[static_cast<std::size_t>(id)];
  if (list.ready) return list;
  // The GPUs of a host that have the same NICs to choose from take turns.
  const auto same_choice = [](const AccessList& a, const AccessList& b) {
    return a.equal == b.equal &&
           std::equal(a.all.begin(), a.all.begin() + static_cast<std::ptrdiff_t>(a.equal),
                      b.all.begin(), [](const Access& x, const Access& y) { return x.at == y.at; });
  };
  std::vector<NodeId> peers;
  for (const NodeId other : of_host[node(id).host]) {
    if (node(other).kind == node(id).kind) peers.push_back(other);
  }
  for (NodeId peer : peers) list_accesses(peer, accesses[static_cast<std::size_t>(peer)]);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    AccessList& mine = accesses[static_cast<std::size_t>(peers[i])];
    std::size_t before = 0;
    for (std::size_t j = 0; j < i; ++j) {
      before += same_choice(mine, accesses[static_cast<std::size_t>(peers[j])]) ? 1 : 0;
    }
    mine.preferred = mine.equal == 0 ? 0 : before % mine.equal;
    mine.ready = true;
  }
  return list;
}

std::optional<std::vector<Hop>> Router::Impl::through_network(NodeId from, NodeId to) {
  const AccessList& out = access_list(from);
  const AccessList& in = access_list(to);
  const auto attempt = [&](const Access& a, const Access& b) -> std::optional<std::vector<Hop>> {
    if (a.at == b.at) return std::nullopt;
    const auto middle = path(Net::network, a.at, b.at);
    if (!middle) return std::nullopt;
    return joined(joined(a.hops, *middle), reversed(b.hops));
  };
  if (out.all.empty() || in.all.empty()) return std::nullopt;
  if (auto hops = attempt(out.all[out.preferred], in.all[in.preferred])) return hops;
  // Networks of several planes: the preferred NICs need not be on the same one.
  for (const Access& a : out.all) {
    for (const Access& b : in.all) {
      if (auto hops = attempt(a, b)) return hops;
    }
  }
  return std::nullopt;
}

bool Router::Impl::may_peer(NodeId from, NodeId to) const {
  if (!is_gpu(from) || !is_gpu(to)) return true;
  switch (topology.peer_access) {
    case Topology::PeerAccess::all:
      return true;
    case Topology::PeerAccess::socket:
      return node(from).numa == node(to).numa;
    case Topology::PeerAccess::fabric:
      return false;
  }
  return false;
}

/// Whether what crosses a NIC goes from the host into the network or out of it: a NIC passes on
/// nothing that came from the same side.
bool Router::Impl::passes_nics(const std::vector<Hop>& hops) const {
  for (std::size_t i = 0; i + 1 < hops.size(); ++i) {
    const Link& in = topology.link(hops[i].link);
    const Link& out = topology.link(hops[i + 1].link);
    if (node(hops[i].forward ? in.b : in.a).kind != NodeKind::nic) continue;
    if (net_of(topology, in) == net_of(topology, out)) return false;
  }
  return true;
}

/// What the GPU at its end makes a hop longer by.
double Router::Impl::hop_more_s(const Hop& last) const {
  const Link& link = topology.link(last.link);
  const Node& receiver = node(last.forward ? link.b : link.a);
  if (receiver.kind != NodeKind::gpu) return 0;
  return figure_of(profile.protocol.hop_more_s, receiver.model);
}

Route Router::Impl::finish(RouteKind kind, std::vector<Hop> hops, bool staged) const {
  Route route{kind, std::move(hops), 0, {}, 0};
  double hop_s = 0;  // of its slowest class
  LinkClass slowest = LinkClass::gpu_fabric;
  for (const Hop& hop : route.hops) {
    const Link& link = topology.link(hop.link);
    route.latency_s += link.latency_s;
    const auto of_class = profile.protocol.hop_s.find(link.link_class);
    if (of_class != profile.protocol.hop_s.end() && of_class->second > hop_s) {
      hop_s = of_class->second;
      slowest = link.link_class;
      const auto held = profile.protocol.hold_s.find(link.link_class);
      route.slice_s = held == profile.protocol.hold_s.end() ? hop_s : held->second;
    }
    const LinkProfile* const row = rates().rows[static_cast<std::size_t>(hop.link)];
    if (row != nullptr) route.start_up.combine(row->start_up());
  }
  if (hop_s > 0 && slowest == LinkClass::gpu_fabric) {
    const double more_s = hop_more_s(route.hops.back());
    hop_s += more_s;
    route.slice_s += more_s;
  }
  route.latency_s = std::max(route.latency_s, hop_s - route.slice_s);
  route.start_up.combine({hop_s - route.latency_s, {}});
  if (staged) route.start_up.add(profile.staging_overhead_s);
  return route;
}

std::optional<Way> Router::Impl::find_way(NodeId from, NodeId to) {
  if (auto hops = path(Net::gpu_fabric, from, to)) {
    return Way{RouteKind::gpu_fabric, std::move(*hops)};
  }
  if (scope == LinkScope::fabric) return std::nullopt;
  if (may_peer(from, to)) {
    if (auto hops = path(Net::host, from, to)) return Way{RouteKind::peer, std::move(*hops)};
  } else if (auto hops = through_cpu(from, to)) {
    return Way{RouteKind::staged, std::move(*hops)};
  }
  if (auto hops = through_network(from, to)) return Way{RouteKind::network, std::move(*hops)};
  return std::nullopt;
}

std::optional<Route> Router::Impl::compute(NodeId from, NodeId to) {
  if (from == to) return Route{};
  const auto found = [&] { return find_way(from, to); };
  std::optional<Way> way = ways ? ways->get(pair_key(from, to), found) : found();
  if (!way) return std::nullopt;
  return finish(way->kind, std::move(way->hops), way->kind == RouteKind::staged);
}

std::optional<Route> Router::Impl::compute_via(const Router& router, NodeId from, NodeId to,
                                               NodeId via) const {
  const Route* first = router.route(from, via);
  const Route* second = router.route(via, to);
  if (first == nullptr || second == nullptr) return std::nullopt;
  const bool rests_in_host_memory = is_gpu(from) && is_gpu(to) && node(via).kind == NodeKind::cpu;
  const bool staged =
      rests_in_host_memory || first->kind == RouteKind::staged || second->kind == RouteKind::staged;
  RouteKind kind = std::max(first->kind, second->kind);
  if (staged) kind = std::max(kind, RouteKind::staged);
  if (kind == RouteKind::peer && !is_gpu(via) && !may_peer(from, to)) return std::nullopt;
  std::vector<Hop> hops = joined(first->hops, second->hops);
  if (!passes_nics(hops)) return std::nullopt;
  return finish(kind, std::move(hops), staged);
}

std::optional<Hop> Router::Impl::hop(NodeId from, NodeId to) const {
  for (const Net net : {Net::gpu_fabric, Net::host, Net::network}) {
    if (scope == LinkScope::fabric && net != Net::gpu_fabric) continue;
    for (const LinkGraph::Edge& edge : graph().edges(net, from)) {
      if (edge.to == to) return edge.hop;
    }
  }
  return std::nullopt;
}

std::optional<Route> Router::Impl::compute_along(const Router& router, NodeId from, NodeId to,
                                                 const std::vector<NodeId>& vias) const {
  std::vector<NodeId> stops = vias;
  stops.push_back(to);
  std::vector<Hop> hops;
  RouteKind widest_reach = RouteKind::local;
  NodeId at = from;
  for (const NodeId stop : stops) {
    if (const auto link = hop(at, stop)) {
      hops.push_back(*link);
    } else {
      const Route* leg = router.route(at, stop);
      if (leg == nullptr) return std::nullopt;
      hops = joined(std::move(hops), leg->hops);
      widest_reach = std::max(widest_reach, leg->kind);
    }
    at = stop;
  }
  if (!passes_nics(hops)) return std::nullopt;
  for (const Hop& one : hops) {
    const Net net = net_of(topology, topology.link(one.link));
    const RouteKind reach = net == Net::network ? RouteKind::network
                            : net == Net::host  ? RouteKind::peer
                                                : RouteKind::gpu_fabric;
    widest_reach = std::max(widest_reach, reach);
  }
  if (widest_reach == RouteKind::peer && !may_peer(from, to)) {
    const bool rests = std::any_of(vias.begin(), vias.end(),
                                   [&](NodeId via) { return node(via).kind == NodeKind::cpu; });
    if (!rests) return std::nullopt;
    widest_reach = RouteKind::staged;
  }
  return finish(widest_reach, std::move(hops), widest_reach == RouteKind::staged);
}

namespace {

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> ids = 0;
  return ids++;
}

}  // namespace

Router::Router(const Topology& topology, const Profile& profile, LinkScope scope)
    : Router(topology, std::make_shared<const Profile>(profile), scope) {}

Router::Router(const Topology& topology, std::shared_ptr<const Profile> profile, LinkScope scope)
    : topology_(topology),
      scope_(scope),
      id_(next_id()),
      impl_(std::make_unique<Impl>(topology, std::move(profile), scope)) {}

Router::~Router() = default;
const Profile& Router::profile() const { return impl_->profile; }
std::shared_ptr<const Profile> Router::shared_profile() const { return impl_->shared_profile; }
Router::Router(Router&&) noexcept = default;

bool Router::goes_as(const Router& other) const {
  if (scope_ != other.scope_ || !are_laid_out_alike(topology_, other.topology_)) return false;
  return std::ranges::adjacent_find(other.impl_->by_rate(), [&](LinkId slower, LinkId faster) {
           const bool is_less = other.capacity_gbps(slower) < other.capacity_gbps(faster);
           const double here_gbps = capacity_gbps(slower);
           const double next_gbps = capacity_gbps(faster);
           return is_less ? here_gbps >= next_gbps : here_gbps != next_gbps;
         }) == other.impl_->by_rate().end();
}

void Router::share_ways(const Router& other) {
  std::shared_ptr<KnownWays>& ways = other.impl_->ways;
  if (!ways) ways = std::make_shared<KnownWays>();
  impl_->ways = ways;
}

bool Router::shares_ways(const Router& other) const {
  return impl_->ways && impl_->ways == other.impl_->ways;
}

const Route* Router::route(NodeId from, NodeId to) const {
  const auto nodes = static_cast<NodeId>(topology_.nodes.size());
  CHECK(from >= 0 && from < nodes && to >= 0 && to < nodes);
  const std::uint64_t key = pair_key(from, to);
  std::uint32_t number = impl_->pairs.find(key);
  if (number == HashNumbers::kNone) {
    std::optional<Route> made = impl_->compute(from, to);  // may ask for parts of it
    number = impl_->pairs.number(key);
    impl_->routes.push_back(std::move(made));
  }
  const std::optional<Route>& route = impl_->routes[number];
  return route ? &*route : nullptr;
}

const Route* Router::route(NodeId from, NodeId to, NodeId via) const {
  return route(from, to, std::vector<NodeId>{via});
}

const Route* Router::route(NodeId from, NodeId to, const std::vector<NodeId>& vias) const {
  const auto nodes = static_cast<NodeId>(topology_.nodes.size());
  CHECK(!vias.empty());
  for (const NodeId via : vias) CHECK(via >= 0 && via < nodes);
  auto& known = impl_->via_routes[vias];
  const std::uint64_t key = pair_key(from, to);
  auto at = known.find(key);
  if (at == known.end()) {
    auto made = vias.size() == 1 ? impl_->compute_via(*this, from, to, vias.front())
                                 : impl_->compute_along(*this, from, to, vias);
    at = known.emplace(key, std::move(made)).first;
  }
  return at->second ? &*at->second : nullptr;
}

const Route* Router::route(NodeId from, NodeId to, std::string_view path) const {
  return route(from, to, nodes_of(path));
}

const std::vector<NodeId>& Router::nodes_of(std::string_view path) const {
  auto at = impl_->via_texts.find(path);
  if (at == impl_->via_texts.end()) {
    std::vector<NodeId> vias;
    for (const std::string& name : path_names(path)) {
      const std::optional<NodeId> node = topology_.find(name);
      CHECK(node.has_value());
      vias.push_back(*node);
    }
    at = impl_->via_texts.emplace(std::string(path), std::move(vias)).first;
  }
  return at->second;
}

std::optional<Hop> Router::hop(NodeId from, NodeId to) const { return impl_->hop(from, to); }

/// Whether a route passes no GPU and no switch but the one at its end: what one switch adds up, a
/// second one would have to pass on once, not once for every GPU.
bool Router::Impl::leads_to_one_switch(const Route& route) const {
  for (std::size_t i = 0; i + 1 < route.hops.size(); ++i) {
    const Link& link = topology.link(route.hops[i].link);
    const Node& reached = node(route.hops[i].forward ? link.b : link.a);
    if (reached.kind == NodeKind::gpu || is_switch(reached)) return false;
  }
  return true;
}

std::optional<NodeId> Router::Impl::find_switch(const Router& router,
                                                const std::vector<NodeId>& nodes,
                                                std::optional<NodeId> named) const {
  std::optional<NodeId> best;
  std::size_t best_hops = 0;
  for (const NodeId candidate : combining().all) {
    if (named && candidate != *named) continue;
    const bool in_network = node(candidate).kind == NodeKind::fabric;
    // Not asked for a route: a cluster has thousands of them.
    const bool is_elsewhere = !in_network && !combining().may_join && node(candidate).host >= 0 &&
                              node(candidate).host != node(nodes.front()).host;
    if (is_elsewhere) continue;
    if (profile.switch_ops(node(nodes.front()).model, in_network) == nullptr) continue;
    const Route* first = router.route(nodes.front(), candidate);
    if (first == nullptr || (best && first->hops.size() >= best_hops)) continue;
    const bool joins_all = std::ranges::all_of(nodes, [&](NodeId one) {
      const Route* way = router.route(one, candidate);
      const RouteKind wanted = in_network ? RouteKind::network : RouteKind::gpu_fabric;
      return way != nullptr && way->kind == wanted && leads_to_one_switch(*way);
    });
    if (!joins_all) continue;
    best = candidate;
    best_hops = first->hops.size();
  }
  return best;
}

std::optional<NodeId> Router::combining_switch(const std::vector<NodeId>& nodes,
                                               std::optional<NodeId> named) const {
  CHECK(!nodes.empty());
  const auto [known, is_new] = impl_->switches.try_emplace({named.value_or(-1), nodes});
  if (is_new) known->second = impl_->find_switch(*this, nodes, named);
  return known->second;
}

double Router::capacity_gbps(LinkId link) const { return impl_->gbps(link); }

bool crosses_network(const Topology& topology, const Route& route) {
  return std::ranges::any_of(route.hops, [&](const Hop& hop) {
    return net_of(topology, topology.link(hop.link)) == Net::network;
  });
}

bool passes_gpu(const Topology& topology, const Route& route) {
  for (std::size_t i = 0; i + 1 < route.hops.size(); ++i) {
    const Link& link = topology.link(route.hops[i].link);
    const NodeId reached = route.hops[i].forward ? link.b : link.a;
    if (topology.node(reached).kind == NodeKind::gpu) return true;
  }
  return false;
}

bool maps_memory(const Topology& topology, const Route& route, NodeId from, NodeId to) {
  const bool direct = route.kind == RouteKind::peer || route.kind == RouteKind::gpu_fabric;
  const Node& a = topology.node(from);
  const Node& b = topology.node(to);
  return direct && a.kind == NodeKind::gpu && b.kind == NodeKind::gpu && a.host == b.host;
}

std::vector<std::string> path_names(std::string_view path) { return split(path, '>'); }

std::string path_text(const Topology& topology, const std::vector<NodeId>& path) {
  std::vector<std::string> names;
  for (const NodeId node : path) names.push_back(topology.node(node).name);
  return join(names, ">");
}

}  // namespace espalier
