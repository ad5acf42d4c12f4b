// SPDX-License-Identifier: Apache-2.0
// Plans for GPUs that may map the memory of few others.
#include "planner/packing/peer_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "planner/bounds.h"
#include "planner/pack_allreduce.h"
#include "planner/pack_arborescences.h"
#include "planner/pack_paths.h"
#include "tests/sample.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

struct Bench {
  explicit Bench(Topology machine, const std::vector<int>& gpus = {})
      : topology(std::move(machine)),
        router(topology, topology.profile("ideal")),
        placement(place_ranks(router, gpus)) {}

  Topology topology;
  Router router;
  Placement placement;
};

Forest plan(Collective collective, const Router& router, const Placement& placement) {
  if (collective == Collective::allreduce) return pack_allreduce(router, placement);
  return has_paths(collective) ? pack_paths(collective, 0, router, placement)
                               : pack_arborescences(collective, 0, router, placement);
}

Forest plan(Collective collective, const Bench& bench) {
  return plan(collective, bench.router, bench.placement);
}

/// Most ranks that any rank exchanges data with.
std::size_t max_peers(const Forest& forest) {
  std::map<int, std::set<int>> peers;
  for (const PlannedTree& tree : forest.trees) {
    for (const TreeEdge& edge : tree.edges) {
      peers[edge.parent].insert(edge.child);
      peers[edge.child].insert(edge.parent);
    }
  }
  std::size_t maximum = 0;
  for (const auto& [rank, others] : peers) maximum = std::max(maximum, others.size());
  return maximum;
}

/// Most ranks whose memory any rank maps.
std::size_t max_mapped(const Forest& forest, const Router& router, const Placement& placement) {
  std::map<NodeId, std::set<NodeId>> mapped;
  for (const PlannedTree& tree : forest.trees) {
    for (const TreeEdge& edge : tree.edges) {
      const NodeId from = site_node(placement, edge.parent);
      const NodeId to = site_node(placement, edge.child);
      const Route* route =
          edge.path.empty() ? router.route(from, to) : router.route(from, to, edge.path);
      if (route == nullptr || !maps_memory(router.topology(), *route, from, to)) continue;
      mapped[from].insert(to);
      mapped[to].insert(from);
    }
  }
  std::size_t maximum = 0;
  for (const auto& [gpu, others] : mapped) maximum = std::max(maximum, others.size());
  return maximum;
}

constexpr Collective kPlanned[] = {Collective::allreduce, Collective::gather, Collective::scatter,
                                   Collective::alltoall};

TEST(PeerLimits, TheWholeMachineLosesNothing) {
  // Sixteen GPUs below PCIe switches, each of which may map eight. What is lost is lost to whole
  // weights: alltoall's relayed blocks cross card uplinks no more often than direct ones would.
  const Bench bench(load_topology("p2.16xlarge"));
  for (const Collective collective : kPlanned) {
    const std::string trace(to_string(collective));
    const Forest forest = plan(collective, bench);
    EXPECT_EQ(check_forest(forest, bench.router, bench.placement), std::vector<std::string>{})
        << trace;
    EXPECT_LE(max_peers(forest), 8U) << trace;
    const Bound bound = bandwidth_bound(collective, 0, bench.router, bench.placement);
    EXPECT_GE(forest.algbw_gbps, 0.998 * bound.algbw_gbps) << trace;
    EXPECT_GE(forest.unlimited_gbps, forest.algbw_gbps) << trace;  // it gave way
  }
}

TEST(PeerLimits, NoLimitMakesPlansFaster) {
  // The plan without limits is rounded to units that cost it a little more here.
  std::vector<int> gpus(11);
  std::iota(gpus.begin(), gpus.end(), 0);
  const Forest forest = plan(Collective::allreduce, Bench(load_topology("p2.16xlarge"), gpus));
  EXPECT_GT(forest.unlimited_gbps, 0);
  EXPECT_GE(forest.unlimited_gbps, forest.algbw_gbps);
}

TEST(PeerLimits, RandomSubsets) {
  constexpr unsigned kSeed = 20261120;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const Topology machine = load_topology("p2.16xlarge");
  for (int trial = 0; trial < 12; ++trial) {
    std::vector<int> gpus(16);
    std::iota(gpus.begin(), gpus.end(), 0);
    std::shuffle(gpus.begin(), gpus.end(), random);
    gpus.resize(10 + random() % 6);
    std::sort(gpus.begin(), gpus.end());
    const Bench bench(machine, gpus);
    for (const Collective collective : kPlanned) {
      const std::string trace =
          "trial " + std::to_string(trial) + " " + std::string(to_string(collective));
      const Forest forest = plan(collective, bench);
      EXPECT_EQ(check_forest(forest, bench.router, bench.placement), std::vector<std::string>{})
          << trace;
      EXPECT_LE(max_peers(forest), 8U) << trace;
      const Bound bound = bandwidth_bound(collective, 0, bench.router, bench.placement);
      // On uneven subsets groups meet less evenly, which alltoall pays for.
      const double part = collective == Collective::alltoall ? 0.9 : 0.99;
      EXPECT_GE(forest.algbw_gbps, part * bound.algbw_gbps) << trace;
    }
  }
}

/// The machine with another limit for every GPU.
Topology limited(const std::string& machine, int peers) {
  Topology topology = load_topology(machine);
  for (Node& node : topology.nodes) node.peer_limit = peers;
  return topology;
}

TEST(PeerLimits, OneWayTreesKeepLowLimits) {
  // Two peers each: the chosen pairs make a chain or ring, on which every byte still goes over
  // every GPU's link once each way.
  const Bench bench(limited("p2.8xlarge", 2));
  for (const Collective collective : {Collective::broadcast, Collective::reduce,
                                      Collective::allgather, Collective::reducescatter}) {
    const std::string trace(to_string(collective));
    const Forest forest = plan(collective, bench);
    EXPECT_EQ(check_forest(forest, bench.router, bench.placement), std::vector<std::string>{})
        << trace;
    EXPECT_LE(max_peers(forest), 2U) << trace;
    const Bound bound = bandwidth_bound(collective, 0, bench.router, bench.placement);
    EXPECT_GE(forest.algbw_gbps, 0.5 * bound.algbw_gbps) << trace;
  }
}

TEST(PeerLimits, LowLimitsStillConnect) {
  for (const int limit : {2, 3, 4, 5}) {
    const Bench bench(limited("p2.16xlarge", limit));
    const auto peers = choose_peers(bench.router, bench.placement);
    ASSERT_TRUE(peers) << limit;
    for (std::size_t site = 0; site < 16; ++site) {
      EXPECT_LE(std::ranges::count((*peers)[site], true), limit) << site;
      for (std::size_t other = 0; other < 16; ++other) {
        EXPECT_EQ((*peers)[site][other], (*peers)[other][site]);
      }
    }
    const Forest forest = plan(Collective::allreduce, bench);
    EXPECT_LE(max_peers(forest), static_cast<std::size_t>(limit));
    // Eight chains of all GPUs would lose nothing; the peers chosen for other ends lose little.
    EXPECT_GE(forest.algbw_gbps, 0.93 * 8.4) << limit;
  }
}

TEST(PeerLimits, OnePeerJoinsNoThreeGpus) {
  const Bench bench(limited("p2.8xlarge", 1));
  EXPECT_FALSE(choose_peers(bench.router, bench.placement));
  // The plan stands as it is; the check of routes refuses the program.
  EXPECT_GT(max_peers(plan(Collective::allreduce, bench)), 1U);
}

TEST(PeerLimits, EveryMachineWithEveryLowLimit) {
  // Where peers can be chosen, the plan keeps the limit, whatever links and GPUs it leaves unused.
  std::vector<std::string> names{"dgx1-v100"};
  for (const CatalogueEntry& machine : catalogue()) {
    if (machine.name != names.front()) names.push_back(machine.name);
  }
  constexpr std::uint64_t kSeed = 20261122;
  for (const std::string& name : sample(names, 1, 5, kSeed)) {
    const Topology plain = load_topology(name);
    std::vector<int> gpus(std::min<std::size_t>(plain.gpus().size(), 8));
    std::iota(gpus.begin(), gpus.end(), 0);
    for (int limit = 1; limit <= 4; ++limit) {
      for (const LinkScope scope : {LinkScope::fabric, LinkScope::all}) {
        const Topology machine = limited(name, limit);
        const Router router(machine, machine.profile("kernel"), scope);
        const Placement placement = place_ranks(router, gpus);
        if (unreachable_pair(router, placement)) continue;
        const bool can_be_kept = choose_peers(router, placement).has_value();
        for (const CollectiveInfo& planned : all_collectives()) {
          SCOPED_TRACE(name + " limit " + std::to_string(limit) + " " +
                       std::string(to_string(scope)) + " " + std::string(planned.name));
          const Forest forest = plan(planned.id, router, placement);
          EXPECT_EQ(check_forest(forest, router, placement), std::vector<std::string>{});
          if (can_be_kept) {
            EXPECT_LE(max_mapped(forest, router, placement), static_cast<std::size_t>(limit));
          }
        }
      }
    }
  }
}

TEST(PeerLimits, StagedCopiesCountForNothing) {
  // The GPUs of kesch's two sockets exchange data through memories of CPUs.
  const Bench bench(limited("kesch", 3));
  const auto peers = choose_peers(bench.router, bench.placement);
  ASSERT_TRUE(peers);
  for (std::size_t a = 0; a < 8; ++a) {
    EXPECT_LE(std::count((*peers)[a].begin(), (*peers)[a].begin() + 8, true), 3) << a;
    EXPECT_EQ(std::count((*peers)[a].begin() + 8, (*peers)[a].end(), true), 8) << a;
  }
}

TEST(PeerLimits, OtherHostsCountForNothing) {
  // GPUs of two hosts exchange data through NICs.
  const Bench bench(load_topology("p2.8xlarge:nodes=2"));
  const auto peers = choose_peers(bench.router, bench.placement);
  ASSERT_TRUE(peers);
  for (int a = 0; a < 8; ++a) {
    for (int b = 8; b < 16; ++b) EXPECT_TRUE((*peers)[a][b]) << a << " " << b;
  }
}

}  // namespace
}  // namespace espalier
