// SPDX-License-Identifier: Apache-2.0
// Trees for one-way collectives against optima found by trying every cut.
#include "planner/pack_arborescences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "planner/bounds.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

struct Machine {
  explicit Machine(const std::string& spec, LinkScope scope = LinkScope::fabric,
                   const std::vector<int>& gpus = {}, const std::string& profile = "ideal")
      : Machine(load_topology(spec), scope, gpus, profile) {}
  explicit Machine(Topology machine, LinkScope scope = LinkScope::fabric,
                   const std::vector<int>& gpus = {}, const std::string& profile = "ideal")
      : topology(std::move(machine)),
        router(topology, topology.profile(profile), scope),
        placement(place_ranks(router, gpus)) {}

  Forest pack(Collective collective, int root = 0, std::int64_t k = 0) const {
    return pack_arborescences(collective, root, router, placement, {.trees_per_root = k});
  }
  std::vector<std::string> problems(const Forest& forest) const {
    return check_forest(forest, router, placement);
  }
  int ranks() const { return static_cast<int>(placement.ranks.size()); }

  Topology topology;
  Router router;
  Placement placement;
};

/// The least capacity leaving / share of the message inside, over every set of the machine's nodes
/// (GPUs that are no ranks left out), straight from the list of links. Full duplex only.
double best_by_all_cuts(const Machine& machine, Collective collective, int root) {
  std::vector<NodeId> nodes = machine.placement.ranks;
  const int n = machine.ranks();
  for (std::size_t i = 0; i < machine.topology.nodes.size(); ++i) {
    if (machine.topology.nodes[i].kind == NodeKind::nvswitch) {
      nodes.push_back(static_cast<NodeId>(i));
    }
  }
  std::vector<int> bit(machine.topology.nodes.size(), -1);
  for (std::size_t i = 0; i < nodes.size(); ++i) bit[nodes[i]] = static_cast<int>(i);
  double best = std::numeric_limits<double>::infinity();
  for (unsigned set = 1; set < 1U << nodes.size(); ++set) {
    const unsigned ranks = set & ((1U << n) - 1);
    if (ranks == (1U << n) - 1) continue;
    double share = 0;
    if (collective == Collective::allgather) {
      for (int rank = 0; rank < n; ++rank) share += (ranks >> rank & 1U) / static_cast<double>(n);
    } else {
      share = ranks >> root & 1U;
    }
    if (share == 0) continue;
    double leaving = 0;
    for (const Link& link : machine.topology.links) {
      const int a = bit[link.a], b = bit[link.b];
      if (a < 0 || b < 0 || link.link_class != LinkClass::gpu_fabric) continue;
      if ((set >> a & 1U) != (set >> b & 1U)) leaving += link.gbps * link.count;
    }
    best = std::min(best, leaving / share);
  }
  return best;
}

void expect_optimal(const Machine& machine, Collective collective, int root) {
  const double best = best_by_all_cuts(machine, collective, root);
  if (best == 0) {
    EXPECT_THROW(machine.pack(collective, root), Error);
    return;
  }
  const Forest forest = machine.pack(collective, root);
  EXPECT_NEAR(forest.algbw_gbps, best, 1e-9 * best);
  EXPECT_THAT(machine.problems(forest), testing::IsEmpty());
}

class Dgx1 : public testing::TestWithParam<const char*> {};

TEST_P(Dgx1, EverySubsetOfGpusAttainsItsSmallestCut) {
  for (unsigned set = 3; set < 256; ++set) {
    std::vector<int> gpus;
    for (int gpu = 0; gpu < 8; ++gpu) {
      if (set >> gpu & 1U) gpus.push_back(gpu);
    }
    if (gpus.size() < 2) continue;
    SCOPED_TRACE(testing::PrintToString(gpus));
    const Machine machine(GetParam(), LinkScope::fabric, gpus);
    expect_optimal(machine, Collective::allgather, 0);
    expect_optimal(machine, Collective::broadcast, static_cast<int>(set % gpus.size()));
  }
}

TEST_P(Dgx1, EveryRootOfTheWholeMachine) {
  const Machine machine(GetParam());
  for (int root = 0; root < 8; ++root) {
    SCOPED_TRACE(root);
    expect_optimal(machine, Collective::broadcast, root);
    const Forest up = machine.pack(Collective::reduce, root);
    EXPECT_DOUBLE_EQ(up.algbw_gbps, machine.pack(Collective::broadcast, root).algbw_gbps);
    EXPECT_THAT(machine.problems(up), testing::IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, Dgx1, testing::Values("dgx1-p100", "dgx1-v100"),
                         [](const auto& machine) { return std::string(machine.param).substr(5); });

Topology bare_machine(int gpus, int switches) {
  Topology topology = load_topology("line:n=1");
  topology.nodes.clear();
  for (int i = 0; i < gpus + switches; ++i) {
    Node node;
    node.name = (i < gpus ? "gpu" : "sw") + std::to_string(i);
    node.kind = i < gpus ? NodeKind::gpu : NodeKind::nvswitch;
    topology.nodes.push_back(node);
  }
  return topology;
}

void join(Topology& topology, NodeId a, NodeId b, double gbps) {
  Link link;
  link.a = a;
  link.b = b;
  link.kind = "link";
  link.link_class = LinkClass::gpu_fabric;
  link.gbps = gbps;
  topology.links.push_back(link);
}

TEST(PackArborescences, RandomMachinesWithSwitchesAttainTheirSmallestCut) {
  const unsigned first_seed = 20261;
  for (unsigned seed = first_seed; seed < first_seed + 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
    const int gpus = 2 + below(5), switches = below(4);
    Topology topology = bare_machine(gpus, switches);
    for (NodeId a = 0; a < gpus + switches; ++a) {
      for (NodeId b = a + 1; b < gpus + switches; ++b) {
        if (below(2) == 0) join(topology, a, b, 1 + below(12));
      }
    }
    const Machine machine(std::move(topology));
    expect_optimal(machine, Collective::allgather, 0);
    expect_optimal(machine, Collective::broadcast, below(static_cast<unsigned>(gpus)));
  }
}

TEST(PackArborescences, FewerTreesThanTheOptimumTakesAreStillRight) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Topology topology = bare_machine(5, 1);
    for (NodeId gpu = 0; gpu < 5; ++gpu) {
      join(topology, gpu, 5, 1 + random() % 50);
      join(topology, gpu, (gpu + 1) % 5, 1 + random() % 50);
    }
    const Machine machine(std::move(topology));
    const double best = best_by_all_cuts(machine, Collective::allgather, 0);
    for (const std::int64_t k : {1, 2, 5, 40}) {
      const Forest forest = machine.pack(Collective::allgather, 0, k);
      EXPECT_THAT(machine.problems(forest), testing::IsEmpty());
      EXPECT_EQ(forest.units, 5 * k);
      EXPECT_LE(forest.algbw_gbps, best * (1 + 1e-9));
      // k trees of b give up less than b on each of at most 4 links into a GPU.
      EXPECT_GE(forest.algbw_gbps, best / (1 + 4.0 / static_cast<double>(k)));
    }
  }
}

/// Boxes of 8 A100 with 300 GB/s to an NVSwitch and 25 GB/s per GPU to a network, as ForestColl has
/// them (arXiv 2402.06787).
Topology a100_boxes(int boxes) {
  Topology topology = bare_machine(8 * boxes, boxes + (boxes > 1 ? 1 : 0));
  for (NodeId gpu = 0; gpu < 8 * boxes; ++gpu) {
    join(topology, gpu, 8 * boxes + gpu / 8, 300);
    if (boxes > 1) join(topology, gpu, 9 * boxes, 25);
  }
  return topology;
}

/// Boxes of 16 MI250 dies with the xGMI links of the catalogue and 16 GB/s each to a network.
Topology mi250_boxes(int boxes) {
  const Topology one = load_topology("mi250");
  Topology topology = bare_machine(16 * boxes, boxes > 1 ? 1 : 0);
  std::vector<int> number(one.nodes.size(), -1);
  for (std::size_t i = 0; i < one.gpus().size(); ++i) number[one.gpus()[i]] = static_cast<int>(i);
  for (int box = 0; box < boxes; ++box) {
    for (const Link& link : one.links) {
      if (number[link.a] < 0 || number[link.b] < 0) continue;
      join(topology, 16 * box + number[link.a], 16 * box + number[link.b], link.gbps * link.count);
    }
    for (NodeId gpu = 0; gpu < 16 && boxes > 1; ++gpu) {
      join(topology, 16 * box + gpu, 16 * boxes, 16);
    }
  }
  return topology;
}

TEST(PackArborescences, PublishedOptima) {
  struct Case {
    Topology topology;
    std::int64_t k;
    const char* exact;
  };
  // 8 GPUs with 300 in: 8/7 x 300. 16 with 325: 16/15 x 325. All dies but one pair: 6 links of 50,
  // 16/14 x 300; with two ways of 16 into the network 32/30 x 332. Two boxes take 13
  // and 83 trees per root.
  for (const Case& one : {Case{a100_boxes(1), 0, "2400/7"}, Case{a100_boxes(2), 13, "1040/3"},
                          Case{mi250_boxes(1), 0, "2400/7"}, Case{mi250_boxes(2), 83, "5312/15"},
                          Case{load_topology("dgx1-v100"), 0, "1200/7"},
                          Case{load_topology("dgx1-p100"), 0, "640/7"}}) {
    const Machine machine(one.topology);
    const Forest forest = machine.pack(Collective::allgather, 0, one.k);
    EXPECT_EQ(forest.exact_algbw, one.exact);
    EXPECT_THAT(machine.problems(forest), testing::IsEmpty());
  }
  // Left to choose, it gives up a little for fewer trees.
  EXPECT_GE(Machine(a100_boxes(2)).pack(Collective::allgather).algbw_gbps, 0.985 * 1040 / 3);
  EXPECT_GE(Machine(mi250_boxes(2)).pack(Collective::allgather).algbw_gbps, 0.985 * 5312 / 15);
}

TEST(PackArborescences, TreesOfASwitchAreLow) {
  // Every GPU can send to all others at once: no reason to relay.
  for (const PlannedTree& tree : Machine("dgx-a100").pack(Collective::allgather).trees) {
    EXPECT_EQ(tree.height(), 1);
  }
}

int tallest(const Forest& forest) {
  int height = 0;
  for (const PlannedTree& tree : forest.trees) height = std::max(height, tree.height());
  return height;
}

/// Within NVSwitch one step reaches everybody, and PCIe leads on from any GPU; on a DGX-1 every GPU
/// has four neighbours and all others are theirs. Before trees exchange arcs some are chains.
TEST(PackArborescences, TreesAreLowWhereTheRateAllowsIt) {
  EXPECT_LE(tallest(Machine("dgx-a100", LinkScope::all).pack(Collective::allgather)), 2);
  EXPECT_LE(tallest(Machine("dgx-a100:nodes=2", LinkScope::all).pack(Collective::allgather)), 3);
  EXPECT_LE(tallest(Machine("dgx1-v100").pack(Collective::allgather)), 3);
}

TEST(PackArborescences, WholeMachinesKeepEveryRouteAndCapacity) {
  struct Case {
    const char* spec;
    double fraction;  ///< of the bound that two trees per root reach, found by running this
  };
  for (const auto& [spec, fraction] :
       {Case{"dgx1-v100", 0.6}, Case{"dgx1-p100:nodes=2", 0.5}, Case{"p3.16xlarge", 0.6},
        Case{"p2.8xlarge", 0.999}, Case{"kesch", 0.999}, Case{"mist", 0.66}, Case{"summit", 0.72},
        Case{"dgx-a100:nodes=2", 0.25}, Case{"mi300x", 0.25}, Case{"baidu40", 0.999}}) {
    for (const char* profile : {"ideal", "kernel"}) {
      SCOPED_TRACE(std::string(spec) + " " + profile);
      const Machine machine(spec, LinkScope::all, {}, profile);
      for (const Collective collective : {Collective::broadcast, Collective::reducescatter}) {
        const Forest forest = machine.pack(collective, machine.ranks() - 1, 2);
        EXPECT_THAT(machine.problems(forest), testing::IsEmpty());
        const Bound bound =
            bandwidth_bound(collective, machine.ranks() - 1, machine.router, machine.placement);
        EXPECT_LE(forest.algbw_gbps, bound.algbw_gbps * (1 + 1e-9));
        EXPECT_GE(forest.algbw_gbps, bound.algbw_gbps * (fraction - 1e-9));
      }
    }
  }
}

TEST(PackArborescences, GpusThatMayNotPeerMeetInACpu) {
  const Machine machine("dgx1-v100", LinkScope::all);
  const auto kind = [&](NodeId node) { return machine.topology.node(node).kind; };
  int staged = 0;
  for (const PlannedTree& tree : machine.pack(Collective::allgather).trees) {
    for (const TreeEdge& edge : tree.edges) {
      if (edge.path.empty()) continue;
      ++staged;
      EXPECT_TRUE(std::any_of(edge.path.begin(), edge.path.end(), [&](NodeId node) {
        return kind(node) == NodeKind::cpu || kind(node) == NodeKind::fabric;
      }));
    }
  }
  EXPECT_GT(staged, 0);  // PCIe adds to NVLink
}

TEST(PackArborescences, HalfDuplexLinksPointAwayFromTheRoot) {
  // One direction is all a broadcast needs; an allgather moves M/2 each way over the 25 GB/s.
  EXPECT_EQ(Machine("line:n=2,gbps=25,half=1").pack(Collective::broadcast).exact_algbw, "25");
  EXPECT_EQ(Machine("line:n=5,gbps=25,half=1").pack(Collective::reduce, 2).exact_algbw, "25");
  const Machine pair("line:n=2,gbps=25,half=1");
  const Forest forest = pair.pack(Collective::allgather);
  EXPECT_EQ(forest.exact_algbw, "25");
  EXPECT_THAT(pair.problems(forest), testing::IsEmpty());
}

TEST(PackArborescences, SharedMediaAreNotOverloaded) {
  Topology topology = load_topology("star:n=4,gbps=12");
  for (Link& link : topology.links) {
    link.duplex = Duplex::shared;
    link.medium = "bus";
  }
  const Machine machine(std::move(topology));
  for (const Collective collective : {Collective::broadcast, Collective::allgather}) {
    EXPECT_THAT(machine.problems(machine.pack(collective, 1)), testing::IsEmpty());
  }
}

TEST(PackArborescences, TheSamePlanOnAMachineOfAnotherSpeed) {
  // Bandwidths times an odd factor have no common unit but for rounding.
  for (const char* spec : {"dgx1-v100", "dgx-a100:nodes=2"}) {
    SCOPED_TRACE(spec);
    Topology topology = load_topology(spec);
    const Forest fast = Machine(topology, LinkScope::all).pack(Collective::allgather);
    constexpr double kFactor = 23.7 / 25 * 0.83;
    for (Link& link : topology.links) link.gbps *= kFactor;
    const Machine slower(topology, LinkScope::all);
    const Forest slow = slower.pack(Collective::allgather);
    EXPECT_EQ(slow.units, fast.units);
    EXPECT_NEAR(slow.algbw_gbps / fast.algbw_gbps, kFactor, 1e-8);
    EXPECT_THAT(slower.problems(slow), testing::IsEmpty());
    ASSERT_EQ(slow.trees.size(), fast.trees.size());
    for (std::size_t i = 0; i < slow.trees.size(); ++i) {
      EXPECT_EQ(slow.trees[i].edges, fast.trees[i].edges);
      EXPECT_EQ(slow.trees[i].weight, fast.trees[i].weight);
    }
  }
}

TEST(PackArborescences, OneRankNeedsNoTransfer) {
  const Machine machine("switch:n=1");
  const Forest forest = machine.pack(Collective::allgather);
  ASSERT_EQ(forest.trees.size(), 1U);
  EXPECT_TRUE(forest.trees[0].edges.empty());
  EXPECT_TRUE(std::isinf(forest.algbw_gbps));
}

TEST(PackArborescences, NamesThePairThatNothingJoins) {
  const Machine machine("dgx1-v100", LinkScope::fabric, {0, 5});
  try {
    machine.pack(Collective::broadcast);
    FAIL() << "GPUs 0 and 5 share no NVLink";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    ASSERT_EQ(error.diagnostics().size(), 1U);
    EXPECT_EQ(error.diagnostics()[0].message,
              "there is no path from rank 0 (gpu0) to rank 1 (gpu5) in the GPU fabric");
  }
}

TEST(CheckForest, FindsWhatIsWrong) {
  const Machine machine("dgx1-p100");
  const Forest good = machine.pack(Collective::allgather);
  ASSERT_THAT(machine.problems(good), testing::IsEmpty());
  const auto expect = [&](const char* what, auto change) {
    Forest bad = good;
    change(bad);
    EXPECT_THAT(machine.problems(bad), testing::Contains(testing::HasSubstr(what)));
  };
  expect("it reaches 7 of 8 ranks", [](Forest& f) { f.trees[0].edges.pop_back(); });
  expect("is reached twice", [](Forest& f) { f.trees[0].edges[1] = f.trees[0].edges[0]; });
  expect("is a parent before it is reached",
         [](Forest& f) { std::swap(f.trees[0].edges.front(), f.trees[0].edges.back()); });
  expect("the weights at rank 0 add up to", [](Forest& f) { ++f.trees[0].weight; });
  expect("GB/s, but can carry only 20", [](Forest& f) { f.algbw_gbps *= 1.001; });
  expect("its root 8 is not a rank", [](Forest& f) { f.trees[0].root = 8; });
  expect("its weight is 0", [](Forest& f) { f.trees[0].weight = 0; });
  expect("does not join ranks", [](Forest& f) { f.trees[0].edges[0].child = -1; });
  // GPUs 0 and 5 share no link.
  expect("no route between gpu0 and gpu5 via ''", [](Forest& f) {
    f.trees[0].edges.back() = {0, 5, {}};
  });
}

}  // namespace
}  // namespace espalier
