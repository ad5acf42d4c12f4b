// SPDX-License-Identifier: Apache-2.0
#include "planner/link_loads.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace espalier {

namespace {

const Link& link_of(const Router& router, LinkId link) { return router.topology().link(link); }

/// Where the load of a hop is counted: directions that share a link count as one, and so do the
/// links of a medium.
std::pair<LinkId, bool> counted_at(const Router& router, const Hop& hop) {
  const Link& link = link_of(router, hop.link);
  if (link.duplex == Duplex::full) return {hop.link, hop.forward};
  if (link.duplex == Duplex::half) return {hop.link, true};
  const std::vector<Link>& links = router.topology().links;
  const auto first = std::ranges::find(links, link.medium, &Link::medium);
  return {static_cast<LinkId>(first - links.begin()), true};
}

}  // namespace

bool LinkLoads::add(const TreeEdge& edge, bool up, std::int64_t units) {
  const NodeId parent = site_node(placement_, edge.parent);
  const NodeId child = site_node(placement_, edge.child);
  std::vector<NodeId> path = edge.path;
  if (up) std::reverse(path.begin(), path.end());
  const NodeId from = up ? child : parent;
  const NodeId to = up ? parent : child;
  const Route* route = path.empty() ? router_.route(from, to) : router_.route(from, to, path);
  if (route == nullptr) return false;
  std::optional<std::pair<LinkId, bool>> before;
  for (const Hop& hop : route->hops) {
    const auto at = counted_at(router_, hop);
    // What one station puts on a bus all others hear; having left the bus, it is put there again.
    const bool is_shared = link_of(router_, hop.link).duplex == Duplex::shared;
    if (!is_shared || before != at) units_[at] += units;
    before = at;
  }
  return true;
}

std::vector<LinkLoad> LinkLoads::loaded() const {
  std::vector<LinkLoad> loads;
  for (const auto& [at, units] : units_) {
    loads.push_back({{at.first, at.second}, units, router_.capacity_gbps(at.first)});
  }
  return loads;
}

std::vector<LinkLoad> link_loads(const Forest& forest, const Router& router,
                                 const Placement& placement) {
  LinkLoads counter(router, placement);
  for (const PlannedTree& tree : forest.trees) {
    for (const TreeEdge& edge : tree.edges) counter.add(edge, forest.collective, tree.weight);
  }
  std::map<std::pair<LinkId, bool>, LinkLoad> loads;
  for (const LinkLoad& load : counter.loaded()) {
    loads.emplace(std::pair(load.hop.link, load.hop.forward), load);
  }
  const Topology& topology = router.topology();
  std::set<NodeId> sites(placement.ranks.begin(), placement.ranks.end());
  sites.insert(placement.relays.begin(), placement.relays.end());
  const std::set<int> hosts(placement.machine_of_rank.begin(), placement.machine_of_rank.end());
  const auto takes_part = [&](NodeId id) {
    const Node& node = topology.node(id);
    if (node.kind == NodeKind::gpu) return sites.contains(id);
    return node.host < 0 || hosts.contains(node.host);
  };
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const auto id = static_cast<LinkId>(i);
    const Link& link = topology.links[i];
    const std::optional<Hop> hop = router.hop(link.a, link.b);
    if (!hop || hop->link != id || !takes_part(link.a) || !takes_part(link.b)) continue;
    for (const bool forward : {true, false}) {
      const auto at = counted_at(router, {id, forward});
      loads.try_emplace(at, LinkLoad{{at.first, at.second}, 0, router.capacity_gbps(at.first)});
    }
  }
  std::vector<LinkLoad> all;
  for (const auto& [at, load] : loads) all.push_back(load);
  std::ranges::stable_sort(
      all, {}, [](const LinkLoad& load) { return std::pair(load.hop.link, !load.hop.forward); });
  return all;
}

double share_used(const LinkLoad& load, const Forest& forest) {
  if (load.units == 0 || !std::isfinite(forest.algbw_gbps)) return 0;
  const double part = static_cast<double>(load.units) / static_cast<double>(forest.units);
  return part * forest.algbw_gbps / load.capacity_gbps;
}

}  // namespace espalier
