// SPDX-License-Identifier: Apache-2.0
#include "topologies/rotation.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/check.h"
#include "core/hash.h"

namespace espalier {
namespace {

constexpr NodeId kNoNode = -1;

/// What makes two nodes alike, names, hosts and their parts aside.
auto kind_of(const Node& node) {
  return std::tie(node.kind, node.model, node.memory_gbps, node.reduce_gbps, node.access_gbps,
                  node.exchange, node.peer_limit, node.copy_engines, node.combines, node.speed);
}
/// What makes two links alike, ends aside.
auto kind_of(const Link& link) {
  return std::tie(link.kind, link.link_class, link.count, link.gbps, link.measured_gbps,
                  link.latency_s, link.duplex, link.measured_factor);
}

/// Numbers for what is alike.
template <class Things>
std::vector<std::uint64_t> numbers_of_kinds(const Things& things) {
  using Kind = decltype(kind_of(things.front()));
  std::map<Kind, std::uint64_t> numbers;
  std::vector<std::uint64_t> kinds;
  kinds.reserve(things.size());
  for (const auto& thing : things) {
    kinds.push_back(numbers.try_emplace(kind_of(thing), numbers.size()).first->second);
  }
  return kinds;
}

/// Finds where nodes are moved to, given where those with ranks are.
class Matching {
 public:
  /// By those links that count.
  template <class Counts>
  Matching(const Topology& topology, const Counts& counts, std::vector<NodeId>& next)
      : topology_(topology),
        next_(next),
        previous_(next.size(), kNoNode),
        node_kinds_(numbers_of_kinds(topology.nodes)),
        link_kinds_(numbers_of_kinds(topology.links)),
        links_(next.size()) {
    for (LinkId link = 0; link < static_cast<LinkId>(topology.links.size()); ++link) {
      if (!counts(topology.link(link))) continue;
      links_[static_cast<std::size_t>(topology.link(link).a)].push_back(link);
      links_[static_cast<std::size_t>(topology.link(link).b)].push_back(link);
    }
    for (NodeId node = 0; node < static_cast<NodeId>(next.size()); ++node) {
      const NodeId to = next_[static_cast<std::size_t>(node)];
      if (to != kNoNode) previous_[static_cast<std::size_t>(to)] = node;
    }
  }

  /// Nodes that only one other looks like are matched, until all are; where none is left of these,
  /// those that look alike are in their order: a choice that a check has to confirm.
  bool run() {
    for (;;) {
      std::unordered_map<std::uint64_t, Look> looks;
      std::size_t open = 0;
      for (NodeId node = 0; node < static_cast<NodeId>(next_.size()); ++node) {
        if (next_[static_cast<std::size_t>(node)] == kNoNode) {
          looks[look_of(node, true)].from.push_back(node);
          ++open;
        }
        if (previous_[static_cast<std::size_t>(node)] == kNoNode) {
          looks[look_of(node, false)].to.push_back(node);
        }
      }
      if (open == 0) return true;
      bool has_matched = false;
      for (const auto& [unused, look] : looks) {
        if (look.from.size() != look.to.size()) return false;
        if (look.from.size() > 1) continue;
        match(look.from.front(), look.to.front());
        has_matched = true;
      }
      for (const auto& [unused, look] : looks) {
        for (std::size_t i = 0; !has_matched && i < look.from.size(); ++i) {
          match(look.from[i], look.to[i]);
        }
      }
    }
  }

 private:
  struct Look {
    std::vector<NodeId> from, to;
  };

  void match(NodeId from, NodeId to) {
    next_[static_cast<std::size_t>(from)] = to;
    previous_[static_cast<std::size_t>(to)] = from;
  }

  /// Of a node to be moved: with neighbours as they will be; or of one that another is moved to.
  std::uint64_t look_of(NodeId node, bool is_moved) const {
    std::uint64_t look = mix64(node_kinds_[static_cast<std::size_t>(node)]);
    for (const LinkId id : links_[static_cast<std::size_t>(node)]) {
      const Link& link = topology_.link(id);
      const auto other = static_cast<std::size_t>(link.a == node ? link.b : link.a);
      const NodeId to = is_moved                      ? next_[other]
                        : previous_[other] != kNoNode ? static_cast<NodeId>(other)
                                                      : kNoNode;
      // In any order.
      look += mix64(link_kinds_[static_cast<std::size_t>(id)] << 32 ^
                    static_cast<std::uint64_t>(to + 1));
    }
    return look;
  }

  const Topology& topology_;
  std::vector<NodeId>& next_;
  std::vector<NodeId> previous_;
  const std::vector<std::uint64_t> node_kinds_;
  const std::vector<std::uint64_t> link_kinds_;
  std::vector<std::vector<LinkId>> links_;  ///< by node
};

/// By element, the lowest of its cycle and how many the cycle has for each of `groups`; false where
/// it closes too late.
template <class Id>
bool find_cycles(const std::vector<Id>& next, int groups, std::vector<Id>& first,
                 std::vector<double>& per_group) {
  first.assign(next.size(), Id{});
  per_group.assign(next.size(), 0);
  for (std::size_t one = 0; one < next.size(); ++one) {
    if (per_group[one] > 0) continue;
    int length = 1;
    for (auto at = static_cast<std::size_t>(next[one]); at != one && length <= groups; ++length) {
      at = static_cast<std::size_t>(next[at]);
    }
    if (groups % length != 0) return false;
    auto at = one;
    for (int i = 0; i < length; ++i, at = static_cast<std::size_t>(next[at])) {
      first[at] = static_cast<Id>(one);
      per_group[at] = static_cast<double>(length) / groups;
    }
  }
  return true;
}

}  // namespace

std::optional<Rotation> Rotation::find(const Topology& topology, const Placement& placement,
                                       const std::vector<int>& next_rank, int groups, Of what) {
  CHECK(groups > 1 && placement.ranks.size() == next_rank.size());
  const auto is_shared = [](const Link& link) { return link.duplex == Duplex::shared; };
  const auto has_shared = [](const Node& node) { return !node.memory.empty(); };
  if (std::ranges::any_of(topology.links, is_shared)) return std::nullopt;
  if (std::ranges::any_of(topology.nodes, has_shared)) return std::nullopt;
  Rotation made(topology, groups, what);
  if (!made.match_nodes(placement, next_rank) || !made.match_links() || !made.close())
    return std::nullopt;
  return made;
}

bool Rotation::is_left_out(NodeId node) const {
  const NodeKind kind = topology_->node(node).kind;
  switch (what_) {
    case Of::all:
      return false;
    case Of::without_cpus:
      return kind == NodeKind::cpu;
    case Of::gpu_fabric:
      return kind != NodeKind::gpu && kind != NodeKind::nvswitch;
  }
  return false;
}

bool Rotation::match_nodes(const Placement& placement, const std::vector<int>& next_rank) {
  const Topology& topology = *topology_;
  next_node_.assign(topology.nodes.size(), kNoNode);
  for (std::size_t rank = 0; rank < placement.ranks.size(); ++rank) {
    next_node_[static_cast<std::size_t>(placement.ranks[rank])] =
        placement.ranks[static_cast<std::size_t>(next_rank[rank])];
  }
  std::map<int, int> next_host;
  std::map<std::pair<int, int>, int> next_numa;
  const auto moves_host = [&](NodeId from, NodeId to) {
    const Node& one = topology.node(from);
    const Node& other = topology.node(to);
    if (next_host.try_emplace(one.host, other.host).first->second != other.host) return false;
    return what_ != Of::all ||
           next_numa.try_emplace({one.host, one.numa}, other.numa).first->second == other.numa;
  };
  for (const NodeId gpu : placement.ranks) {
    if (!moves_host(gpu, next(gpu))) return false;
  }
  // Machines without ranks stay where they are.
  for (NodeId node = 0; node < static_cast<NodeId>(next_node_.size()); ++node) {
    const int host = topology.node(node).host;
    const bool stays = (host >= 0 && !next_host.contains(host)) || is_left_out(node);
    if (stays) next_node_[static_cast<std::size_t>(node)] = node;
  }
  const auto counts = [&](const Link& link) { return !is_left_out(link); };
  if (!Matching(topology, counts, next_node_).run()) return false;
  for (NodeId node = 0; node < static_cast<NodeId>(next_node_.size()); ++node) {
    if (is_left_out(node)) continue;
    const Node& from = topology.node(node);
    const Node& to = topology.node(next(node));
    if (kind_of(from) != kind_of(to)) return false;
    if (!moves_host(node, next(node))) return false;
  }
  return true;
}

bool Rotation::match_links() {
  const Topology& topology = *topology_;
  const std::vector<std::uint64_t> kinds = numbers_of_kinds(topology.links);
  using Ends = std::tuple<NodeId, NodeId, std::uint64_t>;
  std::map<Ends, std::vector<std::size_t>> known;  // hops from one to the other, the lowest last
  next_hop_.resize(2 * topology.links.size());
  for (std::size_t index = next_hop_.size(); index-- > 0;) {
    const Link& link = topology.links[index / 2];
    const bool forward = index % 2 == 0;
    known[{forward ? link.a : link.b, forward ? link.b : link.a, kinds[index / 2]}].push_back(
        index);
  }
  for (std::size_t index = 0; index < next_hop_.size(); ++index) {
    const Link& link = topology.links[index / 2];
    const bool forward = index % 2 == 0;
    if (is_left_out(link)) {
      next_hop_[index] = index;
      continue;
    }
    const auto found = known.find(
        {next(forward ? link.a : link.b), next(forward ? link.b : link.a), kinds[index / 2]});
    if (found == known.end() || found->second.empty()) return false;
    next_hop_[index] = found->second.back();
    found->second.pop_back();
  }
  // A link that has one rate for both directions is one thing to move.
  for (std::size_t index = 0; index < next_hop_.size(); index += 2) {
    if (topology.links[index / 2].duplex == Duplex::full) continue;
    next_hop_[index] = next_hop_[index] / 2 * 2;
    next_hop_[index + 1] = next_hop_[index] + 1;
  }
  return true;
}

bool Rotation::close() {
  return find_cycles(next_node_, groups_, first_node_, per_group_node_) &&
         find_cycles(next_hop_, groups_, first_hop_, per_group_hop_);
}

std::size_t Rotation::index_of(const Hop& hop) const {
  const bool forward = hop.forward || topology_->link(hop.link).duplex != Duplex::full;
  return 2 * static_cast<std::size_t>(hop.link) + (forward ? 0 : 1);
}
Hop Rotation::next(const Hop& hop) const { return hop_at(next_hop_[index_of(hop)]); }
Hop Rotation::first(const Hop& hop) const { return hop_at(first_hop_[index_of(hop)]); }
double Rotation::per_group(const Hop& hop) const { return per_group_hop_[index_of(hop)]; }

int Rotation::moves(const Hop& hop) const {
  int moves = 0;
  for (std::size_t at = first_hop_[index_of(hop)]; at != index_of(hop); at = next_hop_[at]) ++moves;
  return moves;
}

bool Rotation::keeps_route(const Router& router, NodeId from, NodeId to,
                           std::vector<NodeId> vias) const {
  const NodeId first_from = from;
  const NodeId first_to = to;
  const auto find_route = [&] {
    return vias.empty() ? router.route(from, to) : router.route(from, to, vias);
  };
  const Route* const first = find_route();
  if (first == nullptr) return false;
  std::vector<std::size_t> hops;
  for (const Hop& hop : first->hops) {
    if (is_left_out(topology_->link(hop.link))) return false;
    hops.push_back(index_of(hop));
  }
  for (int group = 1; group < groups_; ++group) {
    from = next(from);
    to = next(to);
    for (NodeId& via : vias) via = next(via);
    const Route* const route = find_route();
    if (route == nullptr || route->hops.size() != hops.size()) return false;
    if (route->kind != first->kind || route->latency_s != first->latency_s ||
        route->start_up != first->start_up || route->slice_s != first->slice_s) {
      return false;
    }
    for (std::size_t i = 0; i < hops.size(); ++i) {
      hops[i] = next_hop_[hops[i]];
      if (index_of(route->hops[i]) != hops[i]) return false;
    }
    if (from == first_from && to == first_to) break;  // and the same again
  }
  return true;
}

}  // namespace espalier
