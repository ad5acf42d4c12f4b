// SPDX-License-Identifier: Apache-2.0
// Paths for gather, scatter, alltoall and sendrecv against optima found by trying every cut, or
// worked out by hand.
#include "planner/pack_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "planner/bounds.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

constexpr Collective kPathCollectives[] = {Collective::gather, Collective::scatter,
                                           Collective::alltoall, Collective::sendrecv};

struct Machine {
  explicit Machine(Topology machine, LinkScope scope = LinkScope::fabric,
                   const std::vector<int>& gpus = {}, const std::string& profile = "ideal")
      : topology(std::move(machine)),
        router(topology, topology.profile(profile), scope),
        placement(place_ranks(router, gpus)) {}
  explicit Machine(const std::string& spec, LinkScope scope = LinkScope::fabric,
                   const std::vector<int>& gpus = {}, const std::string& profile = "ideal")
      : Machine(load_topology(spec), scope, gpus, profile) {}

  Forest pack(Collective collective, int root = 0) const {
    return pack_paths(collective, root, router, placement);
  }
  Bound bound(Collective collective, int root = 0) const {
    return bandwidth_bound(collective, root, router, placement);
  }
  std::vector<std::string> problems(const Forest& forest) const {
    return check_forest(forest, router, placement);
  }
  int ranks() const { return static_cast<int>(placement.ranks.size()); }

  Topology topology;
  Router router;
  Placement placement;
};

/// The least capacity that leaves a set of ranks without the root, over the set's part of the
/// message, straight from the list of links. Machines of GPUs only, full duplex.
double best_gather_by_all_cuts(const Machine& machine, int root) {
  const int n = machine.ranks();
  std::vector<int> rank_of(machine.topology.nodes.size(), -1);
  for (int rank = 0; rank < n; ++rank) rank_of[machine.placement.ranks[rank]] = rank;
  double best = std::numeric_limits<double>::infinity();
  for (unsigned set = 1; set < 1U << n; ++set) {
    if ((set >> root & 1U) != 0) continue;
    double leaving = 0;
    int members = 0;
    for (int rank = 0; rank < n; ++rank) members += static_cast<int>(set >> rank & 1U);
    for (const Link& link : machine.topology.links) {
      const int a = rank_of[link.a], b = rank_of[link.b];
      if (a < 0 || b < 0 || link.link_class != LinkClass::gpu_fabric) continue;
      if ((set >> a & 1U) != (set >> b & 1U)) leaving += link.gbps * link.count;
    }
    best = std::min(best, leaving * n / members);
  }
  return best;
}

class Dgx1Paths : public testing::TestWithParam<const char*> {};

TEST_P(Dgx1Paths, GatherAndScatterOfEverySubsetAttainTheSmallestCut) {
  int connected = 0;
  for (unsigned set = 3; set < 256; ++set) {
    std::vector<int> gpus;
    for (int gpu = 0; gpu < 8; ++gpu) {
      if ((set >> gpu & 1U) != 0) gpus.push_back(gpu);
    }
    if (gpus.size() < 2) continue;
    SCOPED_TRACE(testing::PrintToString(gpus));
    const Machine machine(GetParam(), LinkScope::fabric, gpus);
    const int root = static_cast<int>(set % gpus.size());
    const double best = best_gather_by_all_cuts(machine, root);
    if (best == 0) {
      EXPECT_THROW(machine.pack(Collective::gather, root), Error);
      continue;
    }
    ++connected;
    // Links are alike in both directions: what can be gathered can be scattered.
    for (const Collective collective : {Collective::gather, Collective::scatter}) {
      const Forest forest = machine.pack(collective, root);
      EXPECT_NEAR(forest.algbw_gbps, best, 1e-9 * best);
      EXPECT_THAT(machine.problems(forest), testing::IsEmpty());
    }
  }
  EXPECT_GT(connected, 100);
}

TEST_P(Dgx1Paths, PricesProveExchangesOfEverySubset) {
  int by_prices = 0;
  for (unsigned set = 3; set < 256; ++set) {
    std::vector<int> gpus;
    for (int gpu = 0; gpu < 8; ++gpu) {
      if ((set >> gpu & 1U) != 0) gpus.push_back(gpu);
    }
    if (gpus.size() < 2) continue;
    const Machine machine(GetParam(), LinkScope::fabric, gpus);
    if (best_gather_by_all_cuts(machine, 0) == 0) continue;
    SCOPED_TRACE(testing::PrintToString(gpus));
    for (const Collective collective : {Collective::alltoall, Collective::sendrecv}) {
      const Forest forest = machine.pack(collective);
      const Bound bound = machine.bound(collective);
      EXPECT_EQ(forest.exact_algbw, bound.exact) << to_string(collective);
      EXPECT_THAT(machine.problems(forest), testing::IsEmpty()) << to_string(collective);
      by_prices += bound.kind == "lp" ? 1 : 0;
    }
  }
  EXPECT_GT(by_prices, 0);  // cuts alone would not do
}

INSTANTIATE_TEST_SUITE_P(Machines, Dgx1Paths, testing::Values("dgx1-p100", "dgx1-v100"),
                         [](const auto& param) { return std::string(param.param).substr(5); });

void expect_optimum(const std::string& spec, Collective collective, double algbw_gbps) {
  SCOPED_TRACE(spec + " " + std::string(to_string(collective)));
  const Machine machine(spec);
  const Forest forest = machine.pack(collective);
  EXPECT_NEAR(forest.algbw_gbps, algbw_gbps, 1e-9 * algbw_gbps);
  EXPECT_EQ(machine.bound(collective).exact, forest.exact_algbw);
  EXPECT_THAT(machine.problems(forest), testing::IsEmpty());
}

TEST(PackPaths, AlltoallOfRings) {
  // A GPU is 1, 1, 2, 2, ... steps from the others, (n^2 - 1) / 4 together for odd n and n^2 / 4
  // for even n. n blocks of M/n each take that; 2n directions of 25 GB/s: 2 n x 25 x n / (n x
  // steps).
  for (const int n : {3, 4, 5, 6, 7, 8, 12}) {
    const double steps = n % 2 == 0 ? n * n / 4.0 : (n * n - 1) / 4.0;
    expect_optimum("ring:n=" + std::to_string(n) + ",gbps=25", Collective::alltoall,
                   2 * 25 * n / steps);
  }
}

TEST(PackPaths, AlltoallOfLinesSwitchesMeshesAndTori) {
  for (const int n : {2, 3, 4, 5, 8}) {
    const std::string with_n = "n=" + std::to_string(n) + ",gbps=25";
    // Over the middle link go (n/2) (n - n/2) blocks of M/n each way.
    const int left = n / 2;
    expect_optimum("line:" + with_n, Collective::alltoall, 25.0 * n / (left * (n - left)));
    // A GPU sends n - 1 blocks.
    expect_optimum("switch:" + with_n, Collective::alltoall, 25.0 * n / (n - 1));
    // Every block has a link of its own, and all links are full.
    expect_optimum("full:" + with_n, Collective::alltoall, 25.0 * n);
  }
  // 3 x 3: every GPU has 4 at one step and 4 at two, 12 steps; 36 directions of 25 GB/s carry
  // 9 x 12 steps of blocks of M/9: 36 x 25 x 9 / 108 = 75.
  expect_optimum("torus:x=3,y=3,gbps=25", Collective::alltoall, 75);
}

TEST(PackPaths, SendrecvOfARingGoesBothWays) {
  // M directly, and over the n - 1 links the other way, which all n messages share, 1/(n-1) as
  // much: 25 (1 + 1 / (n-1)).
  for (const int n : {3, 4, 6, 9}) {
    expect_optimum("ring:n=" + std::to_string(n) + ",gbps=25", Collective::sendrecv,
                   25.0 * n / (n - 1));
  }
  // From the end of a line back to its start every link is crossed, in a direction of its own.
  expect_optimum("line:n=5,gbps=25", Collective::sendrecv, 25);
  // Two GPUs have one link between them.
  expect_optimum("full:n=2,gbps=25", Collective::sendrecv, 25);
}

TEST(PackPaths, CertificateWhereNoCutIsTight) {
  // Whatever set of a ring's GPUs sends k messages out has 2k links out of it: a cut says 50. With
  // prices of 1 for 0->1, 1->2, 2->3 and 0->3 every message but that from 3 to 0 costs 1, however
  // it goes (back from 1 to 2 it crosses 0->3, and so on): 4 x 25 / 3.
  const Bound bound = Machine("ring:n=4,gbps=25").bound(Collective::sendrecv);
  EXPECT_EQ(bound.kind, "lp");
  EXPECT_EQ(bound.exact, "100/3");
  EXPECT_EQ(
      bound.certificate,
      "crossing a link costs 1 for gpu0->gpu1, gpu1->gpu2, gpu2->gpu3, "
      "gpu0->gpu3 per byte; other links are free. Then one byte for each of the 4 pairs of GPUs "
      "that exchange data costs at least 3 together, and the bytes that links carry in a second "
      "cost at most "
      "100 GB/s: 100 / 3 = 33.3333 GB/s");
}

TEST(PackPaths, HalfDuplexLinksAreSharedAsIsBest) {
  // Both messages share 25 GB/s.
  expect_optimum("line:n=2,gbps=25,half=1", Collective::sendrecv, 12.5);
  // Two blocks of M/2.
  expect_optimum("line:n=2,gbps=25,half=1", Collective::alltoall, 25);
  // One direction is all a gather needs: 2 blocks of M/3 over the last link.
  expect_optimum("line:n=3,gbps=25,half=1", Collective::gather, 37.5);
  expect_optimum("line:n=3,gbps=25,half=1", Collective::scatter, 37.5);
}

TEST(PackPaths, SharedMedia) {
  // gpu0 is linked to the three others by one bus of 12 GB/s. Its 6 blocks of M/4 cross it once,
  // the other 6 twice, through gpu0: 12 x 4 / 18.
  Topology topology = load_topology("star:n=4,gbps=12");
  for (Link& link : topology.links) {
    link.duplex = Duplex::shared;
    link.medium = "bus";
  }
  const Machine machine(std::move(topology));
  const Forest forest = machine.pack(Collective::alltoall);
  EXPECT_THAT(machine.problems(forest), testing::IsEmpty());
  EXPECT_EQ(forest.exact_algbw, machine.bound(Collective::alltoall).exact);
  EXPECT_EQ(forest.exact_algbw, "8/3");
}

TEST(PackPaths, RandomMachinesAreSolvedExactly) {
  constexpr unsigned kSeed = 20250611;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  for (int trial = 0; trial < 40; ++trial) {
    const int n = 3 + static_cast<int>(random() % 5);
    Topology topology = load_topology("switch:n=" + std::to_string(n) + ",gbps=1");
    const std::vector<NodeId> gpus = topology.gpus();
    Link sample = topology.links[0];
    for (Link& link : topology.links) link.gbps = static_cast<double>(1 + random() % 9);
    for (std::size_t a = 0; a < gpus.size(); ++a) {
      for (std::size_t b = a + 1; b < gpus.size(); ++b) {
        if (random() % 2 == 0) continue;
        sample.a = gpus[a];
        sample.b = gpus[b];
        sample.gbps = static_cast<double>(1 + random() % 9);
        sample.duplex = random() % 4 == 0 ? Duplex::half : Duplex::full;
        topology.links.push_back(sample);
      }
    }
    ASSERT_TRUE(check_topology(topology).empty());
    const Machine machine(std::move(topology));
    const int root = static_cast<int>(random() % static_cast<unsigned>(n));
    for (const Collective collective : kPathCollectives) {
      SCOPED_TRACE(testing::Message() << "trial " << trial << " " << to_string(collective));
      const Forest forest = machine.pack(collective, root);
      const Bound bound = machine.bound(collective, root);
      EXPECT_THAT(machine.problems(forest), testing::IsEmpty());
      // Shares of a block are cut to a few thousand parts.
      EXPECT_LE(forest.algbw_gbps, bound.algbw_gbps * (1 + 1e-12));
      EXPECT_GE(forest.algbw_gbps, bound.algbw_gbps * 0.998);
      if (forest.units <= 2048) {
        EXPECT_EQ(forest.exact_algbw, bound.exact);
      }
    }
  }
}

TEST(PackPaths, WholeMachinesKeepEveryRouteAndCapacity) {
  for (const char* spec : {"dgx1-v100", "dgx1-p100:nodes=2", "p3.16xlarge", "p2.8xlarge", "kesch",
                           "mist", "summit", "dgx-a100:nodes=2", "mi300x", "baidu40"}) {
    for (const char* profile : {"ideal", "kernel"}) {
      const Machine machine(spec, LinkScope::all, {}, profile);
      for (const Collective collective : kPathCollectives) {
        SCOPED_TRACE(std::string(spec) + " " + profile + " " + std::string(to_string(collective)));
        const Forest forest = machine.pack(collective, machine.ranks() - 1);
        EXPECT_THAT(machine.problems(forest), testing::IsEmpty());
        const Bound bound = machine.bound(collective, machine.ranks() - 1);
        EXPECT_LE(forest.algbw_gbps, bound.algbw_gbps * (1 + 1e-9));
        EXPECT_GE(forest.algbw_gbps, bound.algbw_gbps * 0.998);
      }
    }
  }
}

TEST(PackPaths, TheSamePlanOnAFasterMachine) {
  Topology topology = load_topology("dgx1-v100");
  const Forest slow = Machine(topology).pack(Collective::alltoall);
  for (Link& link : topology.links) link.gbps *= 0.83;
  const Forest fast = Machine(topology).pack(Collective::alltoall);
  EXPECT_EQ(slow.units, fast.units);
  EXPECT_NEAR(fast.algbw_gbps / slow.algbw_gbps, 0.83, 1e-8);
  EXPECT_EQ(slow.trees.size(), fast.trees.size());
}

TEST(PackPaths, SwitchesAreCrossedOnce) {
  for (const PlannedTree& path : Machine("dgx-a100").pack(Collective::alltoall).trees) {
    EXPECT_EQ(path.height(), 1);
  }
}

TEST(PackPaths, OneRankNeedsNoPath) {
  const Machine machine("switch:n=1");
  for (const Collective collective : kPathCollectives) {
    const Forest forest = machine.pack(collective);
    ASSERT_EQ(forest.trees.size(), 1U);
    EXPECT_TRUE(forest.trees[0].edges.empty());
    EXPECT_TRUE(std::isinf(forest.algbw_gbps));
    EXPECT_THAT(machine.problems(forest), testing::IsEmpty());
  }
}

TEST(PackPaths, NamesThePairThatNothingJoins) {
  const Machine machine("dgx1-v100", LinkScope::fabric, {0, 5});
  try {
    machine.pack(Collective::alltoall);
    FAIL() << "GPUs 0 and 5 share no NVLink";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    ASSERT_EQ(error.diagnostics().size(), 1U);
    EXPECT_EQ(error.diagnostics()[0].message, "no links in scope join ranks 0 (gpu0) and 1 (gpu5)");
  }
}

TEST(CheckForest, FindsWhatIsWrongWithPaths) {
  // From the end of a line every block goes through the GPUs between.
  const Machine machine("line:n=4,gbps=25");
  const Forest good = machine.pack(Collective::scatter);
  ASSERT_THAT(machine.problems(good), testing::IsEmpty());
  ASSERT_EQ(good.trees.size(), 3U);
  ASSERT_EQ(good.trees[2].edges.size(), 3U);
  const auto expect = [&](const std::vector<std::string>& what, auto change) {
    Forest bad = good;
    change(bad);
    EXPECT_THAT(machine.problems(bad), testing::IsSupersetOf(what));
  };
  expect({"from rank 0 to 1, the number of units is 1 too many"},
         [](Forest& f) { ++f.trees[0].weight; });
  expect({"from rank 0 to 2, the number of units is 1 too many",
          "from rank 0 to 3, the number of units is 1 too few"},
         [](Forest& f) { f.trees[2].edges.pop_back(); });
  expect({"tree 2: it goes on from rank 2, not from 1"},
         [](Forest& f) { f.trees[2].edges.erase(f.trees[2].edges.begin() + 1); });
  expect({"tree 1: rank 1 is reached twice"}, [](Forest& f) {
    f.trees[1].edges.push_back({2, 1, {}});
  });
  expect({"tree 0: no route between gpu0 and gpu2 via ''"}, [](Forest& f) {
    f.trees[0].edges = {{0, 2, {}}};
  });
  expect({"gpu0->gpu1 link would carry 25.025 GB/s, but can carry only 25"},
         [](Forest& f) { f.algbw_gbps *= 1.001; });
}

}  // namespace
}  // namespace espalier
