// SPDX-License-Identifier: Apache-2.0
// Trees and bounds of allreduce against optima that are worked out independently: all partitions of
// the ranks, one by one.
#include "planner/pack_allreduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "planner/bounds.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

/// A machine made ready.
struct Bench {
  Bench(const std::string& machine, const std::vector<int>& gpus, LinkScope scope)
      : topology(load_topology(machine)),
        router(topology, topology.profile("ideal"), scope),
        placement(place_ranks(router, gpus)) {}

  Topology topology;
  Router router;
  Placement placement;
};

using Weights = std::vector<std::vector<std::int64_t>>;

/// Capacity between every two GPUs in MB/s, read off the machine's links.
Weights gpu_links(const Topology& topology) {
  std::vector<int> number(topology.nodes.size(), -1);
  const std::vector<NodeId> gpus = topology.gpus();
  for (std::size_t i = 0; i < gpus.size(); ++i) number[gpus[i]] = static_cast<int>(i);
  Weights weights(gpus.size(), std::vector<std::int64_t>(gpus.size(), 0));
  for (const Link& link : topology.links) {
    const int a = number[link.a], b = number[link.b];
    if (a < 0 || b < 0 || link.link_class != LinkClass::gpu_fabric) continue;
    weights[a][b] += std::llround(link.gbps * link.count * 1000);
    weights[b][a] = weights[a][b];
  }
  return weights;
}

bool connected(const Weights& weights, const std::vector<int>& gpus) {
  std::vector<int> reached{gpus[0]};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const int gpu : gpus) {
      if (weights[reached[i]][gpu] > 0 &&
          std::find(reached.begin(), reached.end(), gpu) == reached.end()) {
        reached.push_back(gpu);
      }
    }
  }
  return reached.size() == gpus.size();
}

/// "600/7", for MB/s over parts.
std::string fraction_gbps(std::int64_t mbps, std::int64_t over) {
  std::int64_t denominator = over * 1000;
  const std::int64_t divisor = std::gcd(mbps, denominator);
  denominator /= divisor;
  std::string text = std::to_string(mbps / divisor);
  if (denominator != 1) text += "/" + std::to_string(denominator);
  return text;
}

/// min over partitions of crossing / (parts - 1): every restricted growth string, which numbers the
/// part of each rank by the order in which parts first appear.
std::string weakest_partition(const Weights& weights, const std::vector<int>& gpus) {
  const std::size_t n = gpus.size();
  std::vector<int> part(n, 0);
  std::int64_t best_mbps = -1, best_over = 1;
  const auto visit = [&](const auto& self, std::size_t next, int parts) -> void {
    if (next == n) {
      if (parts < 2) return;
      std::int64_t crossing = 0;
      for (std::size_t a = 0; a < n; ++a) {
        for (std::size_t b = a + 1; b < n; ++b) {
          if (part[a] != part[b]) crossing += weights[gpus[a]][gpus[b]];
        }
      }
      if (best_mbps < 0 || crossing * best_over < best_mbps * (parts - 1)) {
        best_mbps = crossing;
        best_over = parts - 1;
      }
      return;
    }
    for (part[next] = 0; part[next] <= parts; ++part[next]) {
      self(self, next + 1, std::max(parts, part[next] + 1));
    }
  };
  visit(visit, 1, 1);
  return fraction_gbps(best_mbps, best_over);
}

class EverySubset : public testing::TestWithParam<const char*> {};

TEST_P(EverySubset, AttainsTheWeakestPartitionExactly) {
  const Topology topology = load_topology(GetParam());
  const Weights weights = gpu_links(topology);
  const Router router(topology, topology.profile("ideal"), LinkScope::fabric);
  int subsets = 0;
  for (unsigned mask = 1; mask < 256; ++mask) {
    std::vector<int> gpus;
    for (int gpu = 0; gpu < 8; ++gpu) {
      if (mask >> gpu & 1U) gpus.push_back(gpu);
    }
    if (gpus.size() < 2 || !connected(weights, gpus)) continue;
    ++subsets;
    const Placement placement = place_ranks(router, gpus);
    const std::string optimum = weakest_partition(weights, gpus);
    EXPECT_EQ(bandwidth_bound(Collective::allreduce, 0, router, placement).exact, optimum) << mask;
    const Forest forest = pack_allreduce(router, placement);
    EXPECT_EQ(forest.exact_algbw, optimum) << mask;
    EXPECT_THAT(check_forest(forest, router, placement), testing::IsEmpty()) << mask;
    for (const PlannedTree& tree : forest.trees) {
      EXPECT_LE(tree.height(), static_cast<int>(gpus.size()) / 2) << mask;  // hung up at the centre
    }
  }
  // Of 247 subsets of two to eight GPUs.
  EXPECT_GT(subsets, 150);
}

INSTANTIATE_TEST_SUITE_P(Dgx1, EverySubset, testing::Values("dgx1-p100", "dgx1-v100"),
                         [](const auto& param) { return std::string(param.param).substr(5); });

/// Direct links of random bandwidth between `ranks` GPUs, a line among them so that all connect.
Topology random_machine(std::mt19937& random, int ranks) {
  Topology topology = load_topology("full:n=" + std::to_string(ranks));
  std::vector<Link> links;
  for (Link link : topology.links) {
    const bool line = std::abs(link.a - link.b) == 1;
    if (!line && random() % 2 == 0) continue;
    link.gbps = static_cast<double>(1 + random() % 6);
    links.push_back(link);
  }
  topology.links = links;
  return topology;
}

TEST(PackAllreduce, RandomMachinesAttainTheWeakestPartition) {
  constexpr unsigned kSeed = 20240601;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  for (int trial = 0; trial < 60; ++trial) {
    const int ranks = 2 + static_cast<int>(random() % 6);
    const Topology topology = random_machine(random, ranks);
    ASSERT_TRUE(check_topology(topology).empty());
    const Router router(topology, topology.profile("ideal"), LinkScope::fabric);
    const Placement placement = place_ranks(router, {});
    std::vector<int> all(ranks);
    std::iota(all.begin(), all.end(), 0);
    const std::string optimum = weakest_partition(gpu_links(topology), all);
    const Forest forest = pack_allreduce(router, placement);
    EXPECT_EQ(forest.exact_algbw, optimum) << "trial " << trial;
    EXPECT_THAT(check_forest(forest, router, placement), testing::IsEmpty()) << "trial " << trial;
    EXPECT_EQ(bandwidth_bound(Collective::allreduce, 0, router, placement).exact, optimum);
  }
}

TEST(PackAllreduce, OneSwitch) {
  // n GPUs, B each way on one switch: n B leave the GPUs, 2(n-1) messages: n B / (2(n-1)).
  for (const int n : {2, 3, 5, 8, 13}) {
    const Bench bench("switch:n=" + std::to_string(n) + ",gbps=100", {}, LinkScope::fabric);
    const Forest forest = pack_allreduce(bench.router, bench.placement);
    EXPECT_NEAR(forest.algbw_gbps, 50.0 * n / (n - 1), 0.001 * forest.algbw_gbps) << n;
    EXPECT_THAT(check_forest(forest, bench.router, bench.placement), testing::IsEmpty()) << n;
  }
}

TEST(PackAllreduce, MachinesWithSwitchesComeNearTheBound) {
  for (const char* machine :
       {"dgx1-v100", "p2.8xlarge", "p2.16xlarge", "kesch", "dgx-a100:nodes=2", "mist:nodes=4"}) {
    const Bench bench(machine, {}, LinkScope::all);
    const Bound bound = bandwidth_bound(Collective::allreduce, 0, bench.router, bench.placement);
    const Forest forest = pack_allreduce(bench.router, bench.placement);
    EXPECT_GE(forest.algbw_gbps, 0.995 * bound.algbw_gbps) << machine;
    EXPECT_LE(forest.algbw_gbps, bound.algbw_gbps * (1 + 1e-12)) << machine;
    EXPECT_THAT(check_forest(forest, bench.router, bench.placement), testing::IsEmpty()) << machine;
  }
}

TEST(PackAllreduce, FewRanks) {
  const Bench one("dgx1-v100", {3}, LinkScope::fabric);
  const Forest alone = pack_allreduce(one.router, one.placement);
  EXPECT_TRUE(std::isinf(alone.algbw_gbps));
  ASSERT_EQ(alone.trees.size(), 1U);
  EXPECT_TRUE(alone.trees[0].edges.empty());
  // A double NVLink: 50 GB/s each way, one tree of one edge.
  const Bench two("dgx1-v100", {0, 3}, LinkScope::fabric);
  const Forest pair = pack_allreduce(two.router, two.placement);
  EXPECT_EQ(pair.exact_algbw, "50");
  ASSERT_EQ(pair.trees.size(), 1U);
  EXPECT_EQ(pair.trees[0].edges.size(), 1U);
}

TEST(PackAllreduce, NamesThePairThatNoLinkJoins) {
  const Bench bench("dgx1-v100", {0, 5}, LinkScope::fabric);
  try {
    pack_allreduce(bench.router, bench.placement);
    FAIL() << "gpu0 and gpu5 have no NVLink in common";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_EQ(error.diagnostics().front().message,
              "no links in scope join ranks 0 (gpu0) and 1 (gpu5)");
  }
}

TEST(PackAllreduce, TheSamePlanOnAFasterMachine) {
  // Bandwidths times an odd factor have no common unit but for rounding.
  for (const char* machine : {"dgx1-v100", "dgx-a100", "kesch"}) {
    Topology topology = load_topology(machine);
    const auto plan = [&] {
      const Router router(topology, topology.profile("ideal"));
      return pack_allreduce(router, place_ranks(router, {}));
    };
    const Forest slow = plan();
    for (Link& link : topology.links) link.gbps *= 3.3219280948873623;
    const Forest fast = plan();
    EXPECT_EQ(slow.units, fast.units) << machine;
    EXPECT_NEAR(fast.algbw_gbps / slow.algbw_gbps, 3.3219280948873623, 1e-8) << machine;
    ASSERT_EQ(slow.trees.size(), fast.trees.size()) << machine;
    for (std::size_t i = 0; i < slow.trees.size(); ++i) {
      EXPECT_EQ(slow.trees[i].edges, fast.trees[i].edges) << machine;
      EXPECT_EQ(slow.trees[i].weight, fast.trees[i].weight) << machine;
    }
  }
}

/// GB/s of the chain of ranks 0, 1, ..., up and down at once, by what its transfers put on links.
double chain_rate(const Bench& bench) {
  std::map<std::pair<LinkId, bool>, int> loads;
  const auto& ranks = bench.placement.ranks;
  for (std::size_t i = 0; i + 1 < ranks.size(); ++i) {
    for (const auto& [from, to] : {std::pair{ranks[i], ranks[i + 1]}, {ranks[i + 1], ranks[i]}}) {
      for (const Hop& hop : bench.router.route(from, to)->hops) {
        const bool is_full = bench.topology.link(hop.link).duplex == Duplex::full;
        ++loads[{hop.link, is_full && hop.forward}];
      }
    }
  }
  double rate = 1e9;
  for (const auto& [link, load] : loads) {
    rate = std::min(rate, bench.router.capacity_gbps(link.first) / load);
  }
  return rate;
}

TEST(PackAllreduce, SingleTreesCarryNoLessThanAChain) {
  for (const char* machine :
       {"switch:n=8,gbps=10", "p2.16xlarge", "p2.8xlarge", "dgx-a100", "kesch"}) {
    const Bench bench(machine, {}, LinkScope::all);
    const Forest forest = pack_allreduce(bench.router, bench.placement, TreeCount::one);
    EXPECT_EQ(forest.trees.size(), 1U) << machine;
    EXPECT_GE(forest.algbw_gbps, chain_rate(bench) * (1 - 1e-9)) << machine;
  }
}

}  // namespace
}  // namespace espalier
