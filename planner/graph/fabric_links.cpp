// SPDX-License-Identifier: Apache-2.0
#include "planner/graph/fabric_links.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace espalier {
namespace {

/// More units than this between two ranks never bind: no machine has more fabric links per GPU.
constexpr double kMaxBundle = 64;

}  // namespace

FabricJoint fabric_joint(const Router& router, NodeId a, NodeId b) {
  const Route* route = router.route(a, b);
  if (route == nullptr || route->kind != RouteKind::gpu_fabric) return FabricJoint::none;
  if (route->hops.size() == 1) return FabricJoint::direct;
  const Topology& topology = router.topology();
  for (std::size_t i = 1; i < route->hops.size(); ++i) {
    const Hop& hop = route->hops[i];
    const Link& link = topology.link(hop.link);
    const NodeId passed = hop.forward ? link.a : link.b;
    if (topology.node(passed).kind != NodeKind::nvswitch) {
      return FabricJoint::none;
    }
  }
  return FabricJoint::switched;
}

FabricLinks::FabricLinks(const Router& router, const Placement& placement,
                         const std::vector<int>& ranks)
    : ranks_(static_cast<int>(ranks.size())), units_(ranks.size() * ranks.size(), 0) {
  std::vector<double> gbps(units_.size(), 0);
  double narrowest = std::numeric_limits<double>::infinity();
  for (int a = 0; a < ranks_; ++a) {
    for (int b = a + 1; b < ranks_; ++b) {
      const NodeId from = placement.ranks[static_cast<std::size_t>(ranks[a])];
      const NodeId to = placement.ranks[static_cast<std::size_t>(ranks[b])];
      if (fabric_joint(router, from, to) != FabricJoint::direct) continue;
      const LinkId id = router.route(from, to)->hops.front().link;
      const Link& link = router.topology().link(id);
      gbps[index(a, b)] = router.capacity_gbps(id);
      narrowest = std::min(narrowest, gbps[index(a, b)] / link.count);
    }
  }
  if (!std::isfinite(narrowest)) return;
  unit_gbps_ = narrowest;
  for (int a = 0; a < ranks_; ++a) {
    for (int b = a + 1; b < ranks_; ++b) {
      constexpr double kRounding = 1e-9;
      const double units = std::floor(gbps[index(a, b)] / narrowest * (1 + kRounding));
      units_[index(a, b)] = units_[index(b, a)] = static_cast<int>(std::min(units, kMaxBundle));
    }
  }
}

int FabricLinks::degree(int rank) const {
  int degree = 0;
  for (int other = 0; other < ranks_; ++other) degree += units(rank, other);
  return degree;
}

}  // namespace espalier
