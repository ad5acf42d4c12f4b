// SPDX-License-Identifier: Apache-2.0
// What NCCL does (NVIDIA/nccl src/graph/search.cc), in outline: it looks for as many rings of one
// speed as the links allow, at first over NVLinks between neighbours; if there is none, through
// another GPU of the communicator (path class NVB, since version 2.8); if there is none, over PCIe
// and host memory. Its search is a heuristic with a time limit; here the most rings are found.
#include "planner/ring_search.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "planner/graph/fabric_links.h"
#include "planner/rings/network_rings.h"
#include "planner/rings/ring_packing.h"
#include "planner/rings/routed_ring.h"
#include "topologies/fabric.h"

namespace espalier {
namespace {

NodeId node_of(const Placement& placement, int rank) {
  return placement.ranks[static_cast<std::size_t>(rank)];
}

/// How each rank is joined to the next in the order given, when all are alike.
FabricJoint joint_in_order(const Router& router, const Placement& placement,
                           const std::vector<int>& ranks) {
  FabricJoint joint = FabricJoint::none;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int next = ranks[(i + 1) % ranks.size()];
    const FabricJoint here =
        fabric_joint(router, node_of(placement, ranks[i]), node_of(placement, next));
    if (i > 0 && here != joint) return FabricJoint::none;
    joint = here;
  }
  return joint;
}

/// Ranks that share a machine or a GPU fabric; within, no network is needed.
std::vector<std::vector<int>> islands_of(const Router& router, const Placement& placement) {
  std::vector<std::vector<int>> islands;
  std::map<int, std::size_t> island_of_machine;
  const bool may_join = may_join_hosts(router.topology());
  for (std::size_t i = 0; i < placement.ranks.size(); ++i) {
    const int machine = placement.machine_of_rank[i];
    auto known = island_of_machine.find(machine);
    if (known == island_of_machine.end()) {
      std::size_t island = may_join ? 0 : islands.size();
      while (island < islands.size() &&
             fabric_joint(router, node_of(placement, islands[island].front()),
                          placement.ranks[i]) == FabricJoint::none) {
        ++island;
      }
      if (island == islands.size()) islands.emplace_back();
      known = island_of_machine.emplace(machine, island).first;
    }
    islands[known->second].push_back(static_cast<int>(i));
  }
  return islands;
}

std::vector<Ring> renumbered(std::vector<Ring> rings, const std::vector<int>& ranks) {
  for (Ring& ring : rings) {
    for (int& rank : ring.order) rank = ranks[static_cast<std::size_t>(rank)];
    for (int& relay : ring.relays) {
      if (relay >= 0) relay = ranks[static_cast<std::size_t>(relay)];
    }
  }
  return rings;
}

Ring straight(std::vector<int> order) {
  std::vector<int> relays(order.size(), -1);
  return {std::move(order), std::move(relays)};
}

/// Rings over fabric links of their own; none when there are none.
RingSet link_rings(const Router& router, const Placement& placement, const std::vector<int>& ranks,
                   const RingOptions& options) {
  const FabricLinks links(router, placement, ranks);
  if (ranks.size() == 2) {  // the way there and back uses both directions of a unit
    return {RingKind::direct, std::vector<Ring>(links.units(0, 1), straight(ranks)), false, ""};
  }
  if (std::vector<Ring> rings = pack_rings(links, {true, false}); !rings.empty()) {
    return {RingKind::direct, renumbered(std::move(rings), ranks), true, ""};
  }
  for (const bool both_ways : {true, false}) {
    if (!options.relays) break;
    std::vector<Ring> rings = pack_rings(links, {both_ways, true});
    if (rings.empty()) continue;
    const bool relayed = std::any_of(rings.begin(), rings.end(), [](const Ring& ring) {
      return std::any_of(ring.relays.begin(), ring.relays.end(), [](int r) { return r >= 0; });
    });
    return {relayed ? RingKind::relayed : RingKind::direct, renumbered(std::move(rings), ranks),
            both_ways, ""};
  }
  return {};
}

RingSet island_rings(const Router& router, const Placement& placement,
                     const std::vector<int>& ranks, const RingOptions& options) {
  if (ranks.size() == 1) return {RingKind::direct, {straight(ranks)}, true, ""};
  const FabricJoint in_order = joint_in_order(router, placement, ranks);
  if (in_order == FabricJoint::switched) return {RingKind::switched, {straight(ranks)}, false, ""};
  if (ranks.size() <= static_cast<std::size_t>(kMaxRingRanks)) {
    RingSet found = link_rings(router, placement, ranks, options);
    if (!found.rings.empty()) return found;
  } else if (in_order == FabricJoint::direct) {
    return {RingKind::direct, {straight(ranks)}, true, ""};
  }
  RoutedRing routed = routed_ring(router, placement, ranks);
  if (routed.order.empty()) return {RingKind::routed, {}, false, std::move(routed.why_not)};
  return {RingKind::routed, {straight(std::move(routed.order))}, false, ""};
}

RingSet network_rings(const Router& router, const Placement& placement,
                      const std::vector<std::vector<int>>& islands, const RingOptions& options) {
  RingSet joined{RingKind::network, {}, true, ""};
  std::vector<std::vector<Ring>> rings_by_island;
  for (const std::vector<int>& island : islands) {
    RingSet set = island_rings(router, placement, island, options);
    if (set.rings.empty()) return {RingKind::network, {}, false, set.why_not};
    // Two ranks are joined by one hop, which may be used either way.
    joined.both_ways = joined.both_ways && (set.both_ways || island.size() == 2);
    rings_by_island.push_back(std::move(set.rings));
  }
  joined.rings = join_rings(router, placement, rings_by_island, joined.both_ways);
  return joined;
}

/// Every hop must have a route: joints between islands were not checked before.
std::string missing_hop(const Router& router, const Placement& placement, const RingSet& set) {
  for (const Ring& ring : set.rings) {
    for (std::size_t i = 0; i < ring.order.size(); ++i) {
      const NodeId a = node_of(placement, ring.order[i]);
      const NodeId b = node_of(placement, ring.order[(i + 1) % ring.order.size()]);
      if (ring.relays[i] >= 0 || router.route(a, b) != nullptr) continue;
      const Topology& topology = router.topology();
      return "no route joins " + topology.node(a).name + " and " + topology.node(b).name;
    }
  }
  return "";
}

}  // namespace

RingSet find_rings(const Router& router, const Placement& placement, const RingOptions& options) {
  CHECK(placement.ranks.size() >= 2);
  const std::vector<std::vector<int>> islands = islands_of(router, placement);
  if (islands.size() == 1) return island_rings(router, placement, islands.front(), options);
  RingSet set = network_rings(router, placement, islands, options);
  if (set.rings.empty()) return set;
  set.why_not = missing_hop(router, placement, set);
  if (!set.why_not.empty()) set.rings.clear();
  return set;
}

}  // namespace espalier
