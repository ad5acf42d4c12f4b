// SPDX-License-Identifier: Apache-2.0
#include "planner/machine_order.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "core/check.h"

namespace espalier {
namespace {

/// Indices into `nodes`, by ascending node.
std::vector<int> sorted(const std::vector<NodeId>& nodes) {
  std::vector<int> order(nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int i) { return nodes[static_cast<std::size_t>(i)]; });
  return order;
}

}  // namespace

int MachineOrder::rank(int given) const {
  const auto at = std::ranges::find(given_site, given);
  CHECK(at != given_site.end());
  return static_cast<int>(at - given_site.begin());
}

MachineOrder machine_order(const Placement& given) {
  MachineOrder order;
  order.placement.hosts = given.hosts;
  order.given_site = sorted(given.ranks);
  for (const int rank : order.given_site) {
    const auto at = static_cast<std::size_t>(rank);
    order.placement.ranks.push_back(given.ranks[at]);
    order.placement.host_of_rank.push_back(given.host_of_rank[at]);
    order.placement.machine_of_rank.push_back(given.machine_of_rank[at]);
  }
  for (const int relay : sorted(given.relays)) {
    order.placement.relays.push_back(given.relays[static_cast<std::size_t>(relay)]);
    order.given_site.push_back(static_cast<int>(given.ranks.size()) + relay);
  }
  return order;
}

void rename_sites(Forest& forest, const MachineOrder& order) {
  const auto given = [&](int site) { return order.given_site[static_cast<std::size_t>(site)]; };
  for (PlannedTree& tree : forest.trees) {
    tree.root = given(tree.root);
    if (tree.partner >= 0) tree.partner = given(tree.partner);
    for (TreeEdge& edge : tree.edges) {
      edge.parent = given(edge.parent);
      edge.child = given(edge.child);
    }
  }
}

}  // namespace espalier
