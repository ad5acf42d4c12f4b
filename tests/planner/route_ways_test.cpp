// SPDX-License-Identifier: Apache-2.0
// Bounds by prices hold for whatever programs may name as the way of a transfer: no route that the
// machine allows is cheaper than the cheapest way of the packing problem.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "planner/packing/cheapest_ways.h"
#include "planner/packing/packing_problem.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

constexpr int kMaxSteps = 9;
constexpr int kWalks = 1'000;
constexpr int kPricings = 20;

struct Ways {
  explicit Ways(const std::string& machine)
      : topology(load_topology(machine)),
        router(topology, topology.profile("ideal"), LinkScope::detours),
        placement(place_ranks(router, {})),
        problem(packing_problem(router, placement, EdgeUse::one_way, {}, MixedSwitches::forward)),
        neighbours(topology.nodes.size()) {
    for (const Link& link : topology.links) {
      neighbours[link.a].push_back(link.b);
      neighbours[link.b].push_back(link.a);
    }
  }

  bool is_gpu(NodeId node) const { return topology.node(node).kind == NodeKind::gpu; }

  /// From a GPU along links to the first GPU met; all nodes passed. Empty when none is met.
  std::vector<NodeId> walk(std::mt19937& random) const {
    const auto any = [&](const std::vector<NodeId>& nodes) {
      return nodes[random() % nodes.size()];
    };
    std::vector<NodeId> path{any(placement.ranks)};
    while (path.size() <= kMaxSteps) {
      path.push_back(any(neighbours[path.back()]));
      if (is_gpu(path.back())) return path;
    }
    return {};
  }

  /// At random prices. Returns how many random walks are routes.
  int expect_dear(std::mt19937& random) const {
    std::vector<int> prices;
    std::map<std::pair<LinkId, bool>, int> price_of;
    for (const auto& resource : problem.resources) {
      prices.push_back(static_cast<int>(random() % 4));
      price_of[{resource.link, resource.forward}] = prices.back();
    }
    std::vector<CheapestWays<int>> cheapest;
    for (int rank = 0; rank < problem.ranks; ++rank) {
      cheapest.emplace_back(problem, prices, rank, /*through_sites=*/true);
    }
    const auto rank_at = [&](NodeId node) {
      const auto& ranks = placement.ranks;
      return static_cast<int>(std::find(ranks.begin(), ranks.end(), node) - ranks.begin());
    };
    int accepted = 0;
    for (int trial = 0; trial < kWalks; ++trial) {
      const std::vector<NodeId> path = walk(random);
      if (path.size() < 3 || path.front() == path.back()) continue;
      const NodeId from = path.front(), to = path.back();
      const std::vector<NodeId> vias(path.begin() + 1, path.end() - 1);
      const Route* route = router.route(from, to, vias);
      if (route == nullptr) continue;
      ++accepted;
      int price = 0;
      for (const Hop& hop : route->hops) {
        const bool is_full = topology.link(hop.link).duplex == Duplex::full;
        price += price_of.at({hop.link, is_full ? hop.forward : true});
      }
      EXPECT_GE(price, cheapest[rank_at(from)].at(rank_at(to)).price)
          << topology.nodes[from].name << " " << path_text(topology, vias) << " "
          << topology.nodes[to].name;
    }
    return accepted;
  }

  Topology topology;
  Router router;
  Placement placement;
  PackingProblem problem;
  std::vector<std::vector<NodeId>> neighbours;
};

TEST(RouteWays, NoNamedPathIsCheaperThanBoundsAssume) {
  constexpr unsigned kSeed = 20261123;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  for (const char* machine :
       {"mist", "mist:nodes=2", "summit", "dgx1-v100", "p3.8xlarge", "kesch", "dgx-a100", "cedar",
        "baidu40", "p2.8xlarge", "mi250", ESPALIER_MACHINES "/two_sockets.yaml"}) {
    SCOPED_TRACE(machine);
    const Ways ways(machine);
    int accepted = 0;
    for (int pricing = 0; pricing < kPricings; ++pricing) accepted += ways.expect_dear(random);
    EXPECT_GT(accepted, 0);
  }
}

}  // namespace
}  // namespace espalier
