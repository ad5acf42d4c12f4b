// SPDX-License-Identifier: Apache-2.0
// What NCCL's search finds on machines whose logs are public, and what follows from its tables
// (NVIDIA/nccl src/graph/search.cc).
#include "nccl/graph.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

#include "nccl/node_trees.h"
#include "topologies/load.h"

namespace espalier {
namespace {

NcclGraph graph_of(const std::string& name, int version, const std::vector<int>& gpus = {}) {
  const Topology topology = load_topology(name);
  const Router router(topology, topology.profile("kernel"));
  const Placement placement = place_ranks(router, gpus);
  return nccl_graph(nccl_machine(router, placement), router, placement, version);
}

struct Known {
  const char* machine;
  int version;
  int channels;
  double rate_gbps;
  int blocks;
};

class KnownGraphs : public testing::TestWithParam<Known> {};

TEST_P(KnownGraphs, AreFound) {
  const Known& known = GetParam();
  const NcclGraph graph = graph_of(known.machine, known.version);
  EXPECT_EQ(graph.channels, known.channels);
  EXPECT_NEAR(graph.rate_gbps, known.rate_gbps, 1e-9);
  EXPECT_EQ(nccl_blocks(graph), known.blocks);
}

INSTANTIATE_TEST_SUITE_P(
    Machines, KnownGraphs,
    testing::Values(
        // Three rings both ways, of one NVLink each: 21, 22 and then 20 GB/s.
        Known{"dgx1-v100", 6, 6, 21, 12}, Known{"dgx1-v100", 10, 6, 22, 12},
        Known{"dgx1-v100", 21, 6, 20, 12},
        // Six links of 21 GB/s: 126; at 42 three channels, each then split in two.
        Known{"dgx2", 6, 6, 21, 12}, Known{"dgx2", 9, 6, 21, 12},
        // Twelve links: at 44 or 40 GB/s six channels, each split in two.
        Known{"dgx-a100", 10, 12, 22, 24}, Known{"dgx-a100", 21, 12, 20, 24},
        // Eighteen of 20.6: 370.8; six of 60, split in two.
        Known{"dgx-h100", 21, 12, 30, 24},
        // Eight adapters of 200 Gb/s: 24 GB/s behind PCIe 4. No rate of at least 25: not split.
        Known{"dgx-a100:nodes=2", 21, 8, 24, 16},
        // P100: two rings both ways, of one NVLink of 18 GB/s each.
        Known{"dgx1-p100", 21, 4, 18, 8}),
    [](const auto& one) {
      std::string name = fmt::format("{}_{}", one.param.machine, one.param.version);
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      return name;
    });

TEST(NcclGraph, OfEightB200HasEightChannelsOfNinetyEachSplit) {
  // Eighteen links of 40.1: 721.8 GB/s, in which 90 fits eight times.
  const NcclGraph graph = graph_of("gb200-nvl72", 27, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(graph.channels, 16);
  EXPECT_NEAR(graph.rate_gbps, 45, 1e-9);
  EXPECT_EQ(nccl_blocks(graph), 32);
  // A port carries nine shares: 721.8 / 9 = 80.2.
  EXPECT_EQ(graph.nvls_channels, 8);
  EXPECT_NEAR(graph.nvls_rate_gbps, 80, 1e-9);
}

TEST(NcclGraph, OfOneGpuForEachNodeHasOneOrderAndFasterTrees) {
  // One adapter of 48 GB/s: split in two of 24. From 2.18 on the search goes up from there, to 48;
  // up to 2.17 it finds nothing above 48, and splits that.
  const NcclGraph graph = graph_of("dgx-h100:nodes=2", 28, {0, 8});
  EXPECT_EQ(graph.channels, 2);
  EXPECT_NEAR(graph.rate_gbps, 24, 1e-9);
  EXPECT_NEAR(graph.tree_rate_gbps, 48, 1e-9);
  EXPECT_NEAR(graph_of("dgx-h100:nodes=2", 17, {0, 8}).tree_rate_gbps, 24, 1e-9);
  EXPECT_NEAR(graph_of("dgx-h100:nodes=3", 28, {0, 8, 16}).tree_rate_gbps, 24, 1e-9);
  EXPECT_TRUE(graph.same_order);
  EXPECT_EQ(graph.rings.size(), 1U);
}

TEST(NcclGraph, OfNvlsTakesTheRateThatPortsCarryOnceMoreThanThereAreGpus) {
  // 370.8 / 9 = 41.2.
  const NcclGraph graph = graph_of("dgx-h100", 21);
  EXPECT_EQ(graph.nvls_channels, 8);
  EXPECT_NEAR(graph.nvls_rate_gbps, 40, 1e-9);
  EXPECT_EQ(graph_of("dgx-h100", 16).nvls_channels, 0) << "NVLS came with 2.17";
  EXPECT_EQ(graph_of("dgx-a100", 21).nvls_channels, 0);
}

TEST(NcclGraph, OfAMeshOfEightUsesEveryLinkOnceInEachDirection) {
  const NcclGraph graph = graph_of("mi300x", 21);
  ASSERT_EQ(graph.rings.size(), 7U);
  std::set<std::pair<int, int>> hops;
  for (const Ring& ring : graph.rings) {
    ASSERT_EQ(std::set<int>(ring.order.begin(), ring.order.end()).size(), 8U);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_TRUE(hops.emplace(ring.order[i], ring.order[(i + 1) % 8]).second);
    }
  }
  EXPECT_EQ(hops.size(), 56U);
}

TEST(NcclGraph, OfGpusThatSharePcieHasTheRateOfTheBusiestLink) {
  // Sixteen K80 dies below one PCIe tree; whatever its rate, it is one of the table's.
  const NcclGraph graph = graph_of("p2.16xlarge", 21);
  EXPECT_EQ(graph.kind, RingKind::routed);
  EXPECT_LE(graph.gbps(), 12);
  EXPECT_GT(graph.gbps(), 0);
}

// The pictures of src/graph/trees.cc: of 12 nodes a mirrored second tree, of 13 one moved by one.
TEST(NcclNodeTrees, AreThoseOfItsPictures) {
  using Children = std::vector<std::array<int, 2>>;
  constexpr int kNone = BinaryTree::kNone;
  const auto of_12 = nccl_node_trees(12);
  EXPECT_EQ(of_12[0].top, 0);
  EXPECT_EQ(of_12[0].children[0][0], 8);
  EXPECT_EQ(of_12[0].children[8], (std::array{4, 10}));
  EXPECT_EQ(of_12[0].children[4], (std::array{2, 6}));
  EXPECT_EQ(of_12[0].children[10], (std::array{9, 11}));
  EXPECT_EQ(of_12[1].top, 11);
  EXPECT_EQ(of_12[1].children[11][0], 3);
  EXPECT_EQ(of_12[1].children[3], (std::array{7, 1}));
  const auto of_13 = nccl_node_trees(13);
  EXPECT_EQ(of_13[0].children[12], (std::array{10, kNone}));
  EXPECT_EQ(of_13[1].top, 1);
  EXPECT_EQ(of_13[1].children[1][0], 9);
  EXPECT_EQ(of_13[1].children[9], (std::array{5, 0}));
  EXPECT_EQ(of_13[1].children[0], (std::array{11, kNone}));
  // Three are a chain.
  EXPECT_EQ(nccl_node_trees(3)[0].children, (Children{{2, kNone}, {kNone, kNone}, {1, kNone}}));
  EXPECT_EQ(nccl_node_trees(1)[1].top, 0);
}

TEST(NcclNodeTrees, ReachEveryNodeOnce) {
  for (int nodes = 1; nodes <= 40; ++nodes) {
    for (const BinaryTree& tree : nccl_node_trees(nodes)) {
      std::vector<int> order = {tree.top};
      for (std::size_t next = 0; next < order.size(); ++next) {
        for (const int child : tree.children[static_cast<std::size_t>(order[next])]) {
          if (child != BinaryTree::kNone) order.push_back(child);
        }
      }
      EXPECT_EQ(order.size(), static_cast<std::size_t>(nodes));
      EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), order.size());
    }
  }
}

TEST(NcclMachine, KnowsGpusByTheirModel) {
  EXPECT_EQ(compute_capability("v100-sxm3"), 70);
  EXPECT_EQ(compute_capability("gh200-96gb"), 90);
  EXPECT_EQ(compute_capability("sm86"), 86);
  EXPECT_EQ(compute_capability("l40s"), 89);
  EXPECT_EQ(compute_capability("sm"), 0);
  EXPECT_EQ(compute_capability("something"), 0);
  EXPECT_TRUE(is_amd_gpu("mi300x"));
  EXPECT_FALSE(is_amd_gpu("a100-sxm4"));
}

TEST(NcclMachine, CountsAnNvlinkDomainAsOneNode) {
  const Topology topology = load_topology("gb200-nvl72");
  const Router router(topology, topology.profile("kernel"));
  const NcclMachine machine = nccl_machine(router, place_ranks(router, {}));
  EXPECT_EQ(machine.nodes, 1);
  EXPECT_EQ(machine.ranks_per_node, machine.ranks);
  EXPECT_TRUE(machine.switches_combine);
}

}  // namespace
}  // namespace espalier
