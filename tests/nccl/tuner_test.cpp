// SPDX-License-Identifier: Apache-2.0
// The tables of NCCL's tuner by version, one test for each: what a version counts on machines where
// the figure in question decides, with the arithmetic beside it (NVIDIA/nccl src/graph/tuning.cc;
// nccl/tuner_tables.h has the commits).
#include "nccl/tuner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nccl/machine.h"
#include "tests/nccl/chooser.h"

namespace espalier {
namespace {

constexpr double kKib = 1024;
constexpr double kMib = 1024 * kKib;
constexpr auto kRing = NcclAlgorithm::ring;
constexpr auto kTree = NcclAlgorithm::tree;
constexpr auto kLl = NcclProtocol::ll;
constexpr auto kLl128 = NcclProtocol::ll128;
constexpr auto kSimple = NcclProtocol::simple;
constexpr NcclVersion k2_18_3{18, 3};

/// A machine all of whose GPUs are of another model.
Topology with_gpus(const char* machine, const char* model) {
  Topology topology = load_topology(machine);
  for (Node& node : topology.nodes) {
    if (node.kind == NodeKind::gpu) node.model = model;
  }
  return topology;
}

struct Latency {
  NcclVersion version;
  NcclProtocol protocol;
  double us;
};

void expect_latencies(const Chooser& chooser, NcclAlgorithm algorithm,
                      const std::vector<Latency>& rows) {
  for (const Latency& row : rows) {
    EXPECT_NEAR(chooser.latency_us(row.version, algorithm, row.protocol), row.us, 1e-9)
        << nccl_version_text(row.version) << " " << to_string(row.protocol);
  }
}

// Eight GPUs: the base and 14 hops over NVLink.
TEST(NcclTables, HopsOfTreesOverNvlink) {
  expect_latencies(Chooser("dgx-a100"), kTree,
                   {{6, kLl, 4.4 + 14 * 0.5},
                    {7, kLl, 4.4 + 14 * 0.52},
                    {17, kLl, 4.4 + 14 * 0.52},
                    {18, kLl, 6.8 + 14 * 0.6},
                    {30, kLl, 6.8 + 14 * 0.6},
                    {6, kLl128, 4.4 + 14 * 1.9},
                    {7, kLl128, 4.4 + 14 * 1.2},
                    {8, kLl128, 4.4 + 14 * 1.25},
                    {10, kLl128, 4.4 + 14 * 1.25},
                    {18, kLl128, 14 + 14 * 1.25},
                    {28, kLl128, 14 + 14 * 1.25},
                    {6, kSimple, 14 * 28},
                    {10, kSimple, 14 * 28},
                    {18, kSimple, 14 * 28},
                    {k2_18_3, kSimple, 14 * 4},
                    {22, kSimple, 14 * 28},
                    {23, kSimple, 8.4 + 14 * 4},
                    {28, kSimple, 8.4 + 14 * 4}});
}

// Four GPUs: the base and 6 hops over PCIe.
TEST(NcclTables, HopsOfTreesOverPcie) {
  const Chooser pcie("v100-pcie");
  expect_latencies(pcie, kTree,
                   {{6, kLl, 4.4 + 6 * 1.0},
                    {27, kLl, 6.8 + 6 * 1.0},
                    {10, kLl128, 4.4 + 6 * 1.9},
                    {6, kSimple, 6 * 28},
                    {21, kSimple, 6 * 28},
                    {k2_18_3, kSimple, 6 * 6},
                    {23, kSimple, 8.4 + 6 * 4}});
  // Between POWER processors as long as a ring's, from 2.10 on.
  Topology power = load_topology("v100-pcie");
  for (Link& link : power.links) {
    const auto is_cpu = [&](NodeId node) { return power.node(node).kind == NodeKind::cpu; };
    if (is_cpu(link.a) && is_cpu(link.b)) link.kind = "xbus";
  }
  expect_latencies(Chooser(power), kTree,
                   {{8, kSimple, 6 * 28}, {10, kSimple, 6 * 5.7}, {27, kSimple, 8.4 + 6 * 5.7}});
}

// Two nodes of eight: 14 hops inside, where LL takes 1.8 times as long from 2.7 to 2.17, and twice
// one over the network.
TEST(NcclTables, HopsOfTreesOverTheNetwork) {
  expect_latencies(Chooser("dgx-a100:nodes=2"), kTree,
                   {{6, kLl, 4.4 + 14 * 0.5 + 2 * 5},
                    {7, kLl, 4.4 + 14 * 1.8 * 0.52 + 2 * 5},
                    {17, kLl, 4.4 + 14 * 1.8 * 0.52 + 2 * 5},
                    {18, kLl, 6.8 + 14 * 0.6 + 2 * 5},
                    {6, kLl128, 4.4 + 14 * 1.9 + 2 * 7.5},
                    {7, kLl128, 4.4 + 14 * 1.2 + 2 * 8.5},
                    {27, kLl128, 14 + 14 * 1.25 + 2 * 8.5},
                    {6, kSimple, 14 * 28 + 2 * 50},
                    {7, kSimple, 14 * 28 + 2 * 50},
                    {8, kSimple, 14 * 28 + 2 * 28},
                    {22, kSimple, 14 * 28 + 2 * 28},
                    {k2_18_3, kSimple, 14 * 4 + 2 * 14},
                    {23, kSimple, 8.4 + 14 * 4 + 2 * 14}});
}

TEST(NcclTables, HopsOfRingsOverPcie) {
  expect_latencies(Chooser("v100-pcie"), kRing,
                   {{6, kLl, 3.6 + 6 * 1.0},
                    {10, kLl, 3.6 + 6 * 1.0},
                    {27, kLl, 6.6 + 6 * 1.0},
                    {6, kLl128, 3.6 + 6 * 2.5},
                    {10, kLl128, 10 + 6 * 2.5},
                    {10, kSimple, 8.4 + 6 * 5.7},
                    {28, kSimple, 8.4 + 6 * 5.7}});
}

// Two nodes of one GPU: two hops in all, both over the network up to 2.11 and from 2.23 on, when a
// hop takes as long as a tree's. 2.12 to 2.22 count four over the network, and so two less inside.
TEST(NcclTables, HopsOfRingsOverTheNetwork) {
  const Chooser two("p3dn.24xlarge:nodes=2", {0, 8});
  const auto latency_us = [&](int minor, NcclProtocol protocol) {
    return two.latency_us(minor, kRing, protocol, Collective::allreduce, 8);
  };
  EXPECT_NEAR(latency_us(6, kLl), 3.6 + 2 * 0.9, 1e-9);
  EXPECT_NEAR(latency_us(7, kLl), 3.6 + 2 * 2.7, 1e-9);
  EXPECT_NEAR(latency_us(6, kSimple), 8.4 + 2 * 6.6, 1e-9);
  EXPECT_NEAR(latency_us(10, kSimple), 8.4 + 2 * 9.6, 1e-9);
  EXPECT_NEAR(latency_us(27, kLl), 6.6 + 2 * 5, 1e-9);
  EXPECT_NEAR(latency_us(27, kLl128), 14 + 2 * 8.5, 1e-9);
  EXPECT_NEAR(latency_us(27, kSimple), 8.4 + 2 * 14, 1e-9);
  // An allgather has one hop over the network in all of them.
  const auto gather_us = [&](int minor) {
    return two.latency_us(minor, kRing, kSimple, Collective::allgather, 8);
  };
  EXPECT_NEAR(gather_us(11), 8.4 + 9.6, 1e-9);
  EXPECT_NEAR(gather_us(12), 8.4 + 28, 1e-9);
  EXPECT_NEAR(gather_us(13), 8.4 + 28, 1e-9);
  EXPECT_NEAR(gather_us(14), 8.4 + 9.6, 1e-9);
  EXPECT_NEAR(gather_us(18), 8.4 + 14, 1e-9);
}

// One hop where all channels have one order, as behind NVSwitches; else as many as there are GPUs,
// under Simple those of trees.
TEST(NcclTables, HopsOfRootedRings) {
  const auto broadcast_us = [](const char* machine, NcclVersion version, NcclProtocol protocol) {
    return Chooser(machine).latency_us(version, kRing, protocol, Collective::broadcast);
  };
  EXPECT_NEAR(broadcast_us("dgx-a100", 10, kLl), 3.6 + 0.47, 1e-9);
  EXPECT_NEAR(broadcast_us("dgx-a100", 27, kSimple), 8.4 + 3.4, 1e-9);
  EXPECT_NEAR(broadcast_us("dgx1-v100", 10, kLl), 3.6 + 8 * 0.47, 1e-9);
  EXPECT_NEAR(broadcast_us("dgx1-v100", 10, kSimple), 8.4 + 8 * 28, 1e-9);
  EXPECT_NEAR(broadcast_us("dgx1-v100", k2_18_3, kSimple), 8.4 + 8 * 4, 1e-9);
  EXPECT_NEAR(broadcast_us("dgx1-v100", 27, kSimple), 8.4 + 8 * 4, 1e-9);
}

// Twelve channels of 30 GB/s; LL counts a quarter, from 2.21 on half.
TEST(NcclTables, MostThatLlReachesOnANode) {
  const Chooser h100("dgx-h100");
  EXPECT_NEAR(h100.gbps(20, kRing, kLl), 87.7 * 4 / 7, 1e-9) << "a quarter would be 90";
  EXPECT_NEAR(h100.gbps(21, kRing, kLl), 141 * 4.0 / 7, 1e-9);
  const Chooser v100("dgx1-v100");  // six of 22, then of 20
  EXPECT_NEAR(v100.gbps(10, kRing, kLl), 132 / 4.0 * 4 / 7, 1e-9);
  EXPECT_NEAR(v100.gbps(21, kRing, kLl), 39 * 4.0 / 7, 1e-9) << "half would be 60";
  const Chooser b200("gb200-nvl72", {0, 1, 2, 3, 4, 5, 6, 7});  // sixteen of 45
  EXPECT_NEAR(b200.gbps(25, kRing, kLl), 282 * 4.0 / 7, 1e-9);
  EXPECT_NEAR(b200.gbps(22, kRing, kLl), 141 * 4.0 / 7, 1e-9) << "as Hopper";
  // 2.7 has no limit; up to 2.16 what is not an A100 has that of Volta. Twelve of 22, at most 235
  // on A100.
  EXPECT_NEAR(Chooser("dgx-a100").gbps(7, kRing, kLl), 235 / 4.0 * 4 / 7, 1e-9);
  EXPECT_NEAR(Chooser("dgx-h100").gbps(16, kRing, kLl), 39 * 4.0 / 7, 1e-9);
}

// Between nodes the CPUs decide, whatever the GPUs: two nodes, and more.
TEST(NcclTables, MostThatLlReachesBetweenNodes) {
  const auto ll_gbps = [](const char* machine, int minor, double ranks) {
    return Chooser(machine).gbps(minor, kRing, kLl) * 2 * (ranks - 1) / ranks;
  };
  for (const int minor : {21, 27, 30}) {
    EXPECT_NEAR(ll_gbps("dgx-a100:nodes=2", minor, 16), 22.5, 1e-9) << "AMD";
    EXPECT_NEAR(ll_gbps("dgx-a100:nodes=4", minor, 32), 19, 1e-9);
    EXPECT_NEAR(ll_gbps("dgx-h100:nodes=2", minor, 16), 39, 1e-9) << "Intel";
    EXPECT_NEAR(ll_gbps("dgx-h100:nodes=4", minor, 32), 20.4, 1e-9);
  }
}

// 2.6: 120/128 of six channels of 21, and no more than that much for each collective. 2.7 to 2.9:
// 0.92 of them, and no more than that much for each channel.
TEST(NcclTables, MostOfLl128ByCollective) {
  const Chooser v100("dgx1-v100");
  struct Row {
    Collective collective;
    double most;
    double of_channel;
    double share;  ///< of the buffer that crosses a link
  };
  for (const Row& row : {Row{Collective::broadcast, 113, 18.8, 1},
                         {Collective::reduce, 72, 12, 1},
                         {Collective::allgather, 110, 18.3, 8.0 / 7},
                         {Collective::reducescatter, 91, 15.2, 8.0 / 7},
                         {Collective::allreduce, 100, 16.7, 4.0 / 7}}) {
    const auto gbps = [&](int minor) { return v100.gbps(minor, kRing, kLl128, row.collective); };
    EXPECT_NEAR(gbps(6), row.most * row.share, 1e-9) << to_string(row.collective);
    EXPECT_NEAR(gbps(7), 6 * row.of_channel * row.share, 1e-9) << to_string(row.collective);
    const double of_8 = row.collective == Collective::allreduce ? 16.9 : row.of_channel;
    EXPECT_NEAR(gbps(8), 6 * of_8 * row.share, 1e-9) << to_string(row.collective);
    EXPECT_NEAR(gbps(9), 6 * row.of_channel * row.share, 1e-9) << to_string(row.collective);
  }
  // From 2.10 on 20 for each of six channels of 22; at 2.18 they are of 20, of which 0.92 counts.
  EXPECT_NEAR(v100.gbps(10, kRing, kLl128), 120 * 4.0 / 7, 1e-9);
  EXPECT_NEAR(v100.gbps(18, kRing, kLl128), 0.92 * 120 * 4 / 7, 1e-9);
}

TEST(NcclTables, MostOfAChannelOfRingsUnderLl128) {
  // Sixteen channels of 45: 0.92 of that is 662.4; 73.4 for each is more, 40 is less, as is 36.7.
  const Chooser b200("gb200-nvl72", {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_NEAR(b200.gbps(27, kRing, kLl128), 662.4 * 4 / 7, 1e-9);
  EXPECT_NEAR(b200.gbps(28, kRing, kLl128), 662.4 * 4 / 7, 1e-9);
  EXPECT_NEAR(b200.gbps(29, kRing, kLl128), 640 * 4.0 / 7, 1e-9);
  // One GPU for each node: 0.7 of them from 2.7 to 2.22.
  const Chooser alone("dgx-a100:nodes=2", {0, 8});
  const double all = alone.gbps(10, kRing, kSimple);
  EXPECT_NEAR(alone.gbps(10, kRing, kLl128), 0.7 * all, 1e-9);
  EXPECT_NEAR(alone.gbps(22, kRing, kLl128), 0.7 * alone.gbps(22, kRing, kSimple), 1e-9);
  EXPECT_NEAR(alone.gbps(23, kRing, kSimple), 24, 1e-9);
  EXPECT_NEAR(alone.gbps(23, kRing, kLl128), 20, 1e-9) << "0.92 would be 22.08";
}

// One A100 for each node, whose adapter carries one channel of 24 GB/s. Between two nodes trees
// count 48, of which 23.6 is the limit; between more 24, of which 17.8 is. Since 2.18 of plain
// trees.
TEST(NcclTables, TreesOfOneGpuForEachNode) {
  const Chooser two("dgx-a100:nodes=2", {0, 8}), three("dgx-a100:nodes=3", {0, 8, 16});
  EXPECT_NEAR(two.gbps(17, kTree, kSimple), 23.6 / 2, 1e-9);
  EXPECT_NEAR(two.gbps(28, kTree, kSimple), 0.85 * 23.6 / 2, 1e-9);
  EXPECT_NEAR(three.gbps(28, kTree, kSimple), 0.85 * 17.8 / 2, 1e-9);
  // Of PAT three quarters of either.
  EXPECT_NEAR(two.gbps(28, NcclAlgorithm::pat, kSimple, Collective::allgather), 36, 1e-9);
  EXPECT_NEAR(three.gbps(28, NcclAlgorithm::pat, kSimple, Collective::allgather), 18, 1e-9);
}

// Half of what goes up and down. Eight channels between nodes of A100; inside, 30 GB/s each where
// there are two nodes: 8 x 30 = 240 (235 count up to 2.17), of which 0.92 is more than the limits.
TEST(NcclTables, MostOfAChannelOfTrees) {
  const Chooser two("dgx-a100:nodes=2"), four("dgx-a100:nodes=4");
  EXPECT_NEAR(two.gbps(8, kTree, kSimple), 8 * 22.5 / 2, 1e-9);
  EXPECT_NEAR(four.gbps(8, kTree, kSimple), 8 * 16 / 2.0, 1e-9);
  EXPECT_NEAR(two.gbps(12, kTree, kSimple), 8 * 23.6 / 2, 1e-9);
  EXPECT_NEAR(four.gbps(12, kTree, kSimple), 8 * 17.8 / 2, 1e-9);
  EXPECT_NEAR(two.gbps(27, kTree, kSimple), 8 * 23.6 / 2, 1e-9);
  // Eight of 45 = 360 between nodes of H100, 331.2 of which would count; from 2.18 on plain trees.
  const Chooser h100("dgx-h100:nodes=4");
  EXPECT_NEAR(h100.gbps(17, kTree, kSimple), 8 * 33 / 2.0, 1e-9);
  EXPECT_NEAR(h100.gbps(18, kTree, kSimple), 0.85 * 8 * 36 / 2, 1e-9);
  // 2.6 and 2.7: 110, with more than two nodes 80; of A100 under LL128 of 2.7 130 and 105.
  EXPECT_NEAR(Chooser("dgx-a100").gbps(6, kTree, kSimple), 110 / 2.0, 1e-9);
  EXPECT_NEAR(four.gbps(6, kTree, kSimple), 80 / 2.0, 1e-9);
  EXPECT_NEAR(four.gbps(7, kTree, kSimple), 80 / 2.0, 1e-9);
  EXPECT_NEAR(four.gbps(7, kTree, kLl128), 0.915 * 105 / 2, 1e-9);
}

TEST(NcclTables, MostOfAChannelOfTreesUnderLl128) {
  // Six channels of 21: 0.9 or 0.92 of that times 7/9. 2.7: 110 x 7/9 = 85.6, and 16.7 x 7/9 for
  // each of six, 77.9. 2.8: 115.9 x 7/9 = 90.2; 16.9 for each is more.
  const Chooser v100("dgx1-v100");
  EXPECT_NEAR(v100.gbps(6, kTree, kLl128), 110 * 7 / 9.0 / 2, 1e-9);
  EXPECT_NEAR(v100.gbps(7, kTree, kLl128), 6 * 16.7 * 7 / 9 / 2, 1e-9);
  EXPECT_NEAR(v100.gbps(8, kTree, kLl128), 0.92 * 126 * 7 / 9 / 2, 1e-9);
  // Between four nodes of H100 8 x 36 x 120/128 = 270; 29 for each is less: 232. At 2.17 33 and
  // 36.7: 8 x 33 x 120/128 = 247.5.
  const Chooser h100("dgx-h100:nodes=4");
  EXPECT_NEAR(h100.gbps(17, kTree, kLl128), 247.5 / 2, 1e-9);
  EXPECT_NEAR(h100.gbps(21, kTree, kLl128), 0.85 * 8 * 29 / 2, 1e-9);
}

// Powers of two from 64 bytes on.
TEST(NcclTables, FactorsOfTrees) {
  const Chooser a100("dgx-a100");
  const auto factor = [&](int minor, NcclProtocol protocol, int row) {
    return a100.gbps(minor, kTree, protocol, Collective::allreduce, std::ldexp(64, row)) /
           a100.gbps(minor, kTree, protocol);
  };
  struct Row {
    int minor;
    NcclProtocol protocol;
    int row;
    double factor;
  };
  for (const Row& one :
       {Row{6, kLl, 10, .5},   {6, kLl, 17, .9},     {6, kLl, 18, 1},      {6, kLl128, 10, .7},
        {6, kLl128, 13, .6},   {6, kLl128, 20, .9},  {6, kSimple, 0, .5},  {6, kSimple, 8, .7},
        {6, kSimple, 11, 1},   {7, kLl, 12, .4},     {7, kLl128, 13, .5},  {7, kLl128, 21, 1},
        {7, kSimple, 15, .5},  {7, kSimple, 18, .6}, {7, kSimple, 22, 1},  {8, kLl128, 13, .5},
        {8, kLl128, 16, .7},   {8, kLl128, 21, .92}, {8, kSimple, 15, .6}, {9, kLl128, 22, .92},
        {10, kLl, 4, .9},      {10, kLl, 12, .4},    {10, kLl, 19, 1},     {10, kLl128, 13, .6},
        {10, kLl128, 16, .8},  {10, kLl128, 21, 1},  {10, kSimple, 0, .9}, {10, kSimple, 11, .5},
        {10, kSimple, 22, .9}, {10, kSimple, 23, 1}, {28, kLl, 12, .4},    {28, kSimple, 11, .5}}) {
    EXPECT_NEAR(factor(one.minor, one.protocol, one.row), one.factor, 1e-9)
        << "2." << one.minor << " " << to_string(one.protocol) << " row " << one.row;
  }
}

// Eight channels of 40 GB/s on a node.
TEST(NcclTables, NvlsOfANode) {
  const Chooser h100("dgx-h100");
  const auto nvls = NcclAlgorithm::nvls;
  EXPECT_NEAR(h100.latency_us(17, nvls, kSimple), 40, 1e-9);
  EXPECT_NEAR(h100.latency_us(18, nvls, kSimple), 23, 1e-9);
  EXPECT_NEAR(h100.latency_us(20, nvls, kSimple), 23, 1e-9);
  EXPECT_NEAR(h100.latency_us(21, nvls, kSimple), 25, 1e-9);
  EXPECT_NEAR(h100.latency_us(30, nvls, kSimple), 25, 1e-9);
  EXPECT_NEAR(h100.gbps(17, nvls, kSimple), 0.75 * 360, 1e-9) << "three quarters of rings";
  for (const int minor : {18, 22, 23, 26, 27}) {
    EXPECT_NEAR(h100.gbps(minor, nvls, kSimple), 320 * 5 / 6.0, 1e-9) << minor;
  }
  EXPECT_NEAR(h100.gbps(28, nvls, kSimple), 320 * 0.85 * 7 / 8 * 2 * 8 / 14, 1e-9);
  // Allgathers: as allreduces to 2.22, in full to 2.26, seven eighths since, and then again.
  const auto gather = Collective::allgather;
  EXPECT_NEAR(h100.gbps(22, nvls, kSimple, gather), 320 * 5 / 6.0, 1e-9);
  EXPECT_NEAR(h100.gbps(23, nvls, kSimple, gather), 320, 1e-9);
  EXPECT_NEAR(h100.gbps(27, nvls, kSimple, gather), 280, 1e-9);
  EXPECT_NEAR(h100.gbps(28, nvls, kSimple, gather), 320 * 0.85 * 7 / 8 * 7 / 8, 1e-9);
  // Blackwell: eight of 80, 0.74 of it.
  const Chooser b200("gb200-nvl72", {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_NEAR(b200.gbps(28, nvls, kSimple), 640 * 0.74 * 7 / 8 * 2 * 8 / 14, 1e-9);
}

// Eight heads, 40 GB/s each inside, 48 between nodes.
TEST(NcclTables, NvlsTreesBetweenNodes) {
  const auto tree = NcclAlgorithm::nvls_tree;
  const Chooser two("dgx-h100:nodes=2"), four("dgx-h100:nodes=4");
  EXPECT_NEAR(two.latency_us(21, tree, kSimple), 25 + 2 * 14, 1e-9);
  EXPECT_NEAR(two.latency_us(28, tree, kSimple), 25 + 2 * 14, 1e-9);
  EXPECT_NEAR(two.latency_us(29, tree, kSimple), 25 + 2 * 20.9, 1e-9);
  EXPECT_NEAR(four.latency_us(29, tree, kSimple), 25 + 4 * 20.9, 1e-9);
  EXPECT_NEAR(Chooser("dgx-h100:nodes=3").latency_us(29, tree, kSimple), 25 + 2 * 20.9, 1e-9);
  EXPECT_NEAR(two.gbps(27, tree, kSimple), 8 * 40 * 5 / 6.0, 1e-9);
  EXPECT_NEAR(four.gbps(27, tree, kSimple), 8 * 48 / 2 * 5 / 6.0, 1e-9);
  // Inside 40 x 0.85 x 7/8 x 2 = 59.5, between two nodes 96, between more 48: the limit decides.
  EXPECT_NEAR(two.gbps(28, tree, kSimple), 8 * 57.7 * 16 / 30, 1e-9);
  EXPECT_NEAR(four.gbps(28, tree, kSimple), 8 * 45.5 * 32 / 62, 1e-9);
}

// Of 16 channels and eight heads: 128 chunks at once. Up to 2.20 as long as those of other trees.
TEST(NcclTables, ChunksOfNvlsTrees) {
  const Chooser two("dgx-h100:nodes=2");
  const auto chunk_kib = [&](double bytes, int minor) {
    const NcclCall call = {Collective::allreduce, bytes, minor, NcclAlgorithm::nvls_tree};
    return two.choose(call).work.chunk_bytes / kKib;
  };
  EXPECT_EQ(chunk_kib(4096 * kMib, 20), 512);
  EXPECT_EQ(chunk_kib(4096 * kMib, 21), 128);
  EXPECT_EQ(chunk_kib(4096 * kMib, 30), 128);
  // Less than 4 x 128 x 128 KiB, and less than 128 x 64 KiB.
  EXPECT_EQ(chunk_kib(63 * kMib, 30), 64);
  EXPECT_EQ(chunk_kib(7 * kMib, 30), 32);
}

// NCCL_NVLSTREE_MAX_CHUNKSIZE of src/enqueue.cc: 64 KiB from four nodes on.
TEST(NcclTables, ChunksOfNvlsTreesOfFourNodes) {
  const Chooser four("dgx-h100:nodes=4");
  const auto chunk_kib = [&](double bytes, int minor) {
    const NcclCall call = {Collective::allreduce, bytes, minor, NcclAlgorithm::nvls_tree};
    return four.choose(call).work.chunk_bytes / kKib;
  };
  EXPECT_EQ(chunk_kib(4096 * kMib, 20), 64);
  EXPECT_EQ(chunk_kib(4096 * kMib, 30), 64);
  EXPECT_EQ(chunk_kib(7 * kMib, 30), 32);
}

TEST(NcclTables, PatOfOneGpuForEachNode) {
  const Chooser five("dgx-a100:nodes=5", {0, 8, 16, 24, 32});
  const auto pat = NcclAlgorithm::pat;
  // floor(log2 5) = 2.
  EXPECT_NEAR(five.latency_us(27, pat, kSimple, Collective::allgather), 8 + 2 * 14 / 3.5 + 2.8 * 5,
              1e-9);
  const NcclChoice choice = five.choose({Collective::allgather, kMib, 27, pat});
  EXPECT_NEAR(five.gbps(27, pat, kSimple, Collective::allgather), 0.75 * choice.graph.gbps(), 1e-9);
  // As many channels as there are, once each has 16 KiB.
  EXPECT_EQ(five.choose({Collective::allgather, 32 * kKib, 27, pat}).work.channels, 2);
  EXPECT_EQ(five.choose({Collective::allgather, 16 * kKib, 27, pat}).work.channels, 1);
  // Chunks of 64 KiB at least; of 512 KiB where there are 32 of them for every channel.
  EXPECT_EQ(choice.work.chunk_bytes, 64 * kKib);
  EXPECT_EQ(five.choose({Collective::allgather, 1024 * kMib, 27, pat}).work.chunk_bytes,
            512 * kKib);
}

TEST(NcclTables, Ll128OnlyWhereItWasTried) {
  const auto why_not = [](const Topology& topology, int minor) {
    const NcclChoice choice = Chooser(topology).choose({Collective::allreduce, kMib, minor});
    return Chooser::cell(choice, kRing, kLl128).why_not;
  };
  const Topology a40 = with_gpus("dgx-a100", "a40");
  EXPECT_EQ(why_not(a40, 10), "not enabled for sm86 before 2.27");
  EXPECT_EQ(why_not(a40, 26), "not enabled for sm86 before 2.27");
  EXPECT_EQ(why_not(a40, 27), "");
  const Topology b200 = with_gpus("dgx-h100", "b200");
  EXPECT_EQ(why_not(b200, 24), "not enabled for sm100 before 2.25");
  EXPECT_EQ(why_not(b200, 25), "");
  EXPECT_EQ(why_not(load_topology("dgx-h100"), 16), "not enabled for sm90 before 2.17");
  Topology mixed = load_topology("dgx-h100");
  mixed.nodes[static_cast<std::size_t>(mixed.gpus().front())].model = "b200";
  EXPECT_EQ(why_not(mixed, 28), "GPUs differ");
  EXPECT_EQ(why_not(mixed, 30), "");
}

// Bytes of a thread that make another channel worth it: under Simple 64, under LL128 and in trees
// under LL 8. Blocks of 512 threads, under LL128 of 640.
TEST(NcclTables, ThresholdsOfChannelsAndThreads) {
  const Chooser a100("dgx-a100");
  const auto work = [&](double bytes, int minor, NcclAlgorithm algorithm, NcclProtocol protocol) {
    return a100.choose({Collective::allreduce, bytes, minor, algorithm, protocol}).work;
  };
  EXPECT_EQ(work(32 * kKib, 21, kTree, kLl).channels, 8);  // 4 KiB each
  EXPECT_EQ(work(51200, 21, kRing, kLl128).channels, 10);  // 5 KiB each
  EXPECT_EQ(work(51200, 21, kRing, kLl128).threads, 640);
  EXPECT_EQ(work(256 * kKib, 21, kRing, kSimple).channels, 8);  // 32 KiB each
  EXPECT_EQ(work(64 * kMib, 21, kRing, kSimple).channels, 24);  // as many as there are
  EXPECT_EQ(work(16 * kKib, 21, kRing, kSimple).threads, 256);  // 16 KiB of one channel
  // From 2.23 on a channel has 16 KiB of traffic, which an allreduce has twice.
  EXPECT_EQ(work(32 * kKib, 22, kTree, kLl).channels, 8);
  EXPECT_EQ(work(32 * kKib, 23, kTree, kLl).channels, 4);
  EXPECT_EQ(work(32 * kKib, 25, kTree, kLl).channels, 4);
  // Which are not divided: of 64 for 24 channels, 21 have three and one has one.
  EXPECT_EQ(work(512 * kKib, 22, kRing, kLl128).channels, 24);
  EXPECT_EQ(work(512 * kKib, 23, kRing, kLl128).channels, 22);
  // From 2.26 on LL has four times as much.
  EXPECT_EQ(work(32 * kKib, 26, kTree, kLl).channels, 8);
  EXPECT_EQ(work(16 * kKib, 28, kTree, kLl).channels, 4);
  // 2.4: 256 threads, and under Simple always all channels.
  EXPECT_EQ(work(1024, 4, kRing, kSimple).channels, 24);
  EXPECT_EQ(work(64 * kMib, 4, kRing, kSimple).threads, 256);
  // NVLS: 16, on Blackwell 24.
  EXPECT_EQ(Chooser("dgx-h100")
                .choose({Collective::allreduce, kMib, 27, NcclAlgorithm::nvls})
                .work.channels,
            16);
  EXPECT_EQ(Chooser("gb200-nvl72", {0, 1, 2, 3, 4, 5, 6, 7})
                .choose({Collective::allreduce, kMib, 27, NcclAlgorithm::nvls})
                .work.channels,
            24);
}

// RCCL on MI300X: base 12 and 17, hops of 0.8 and 2.1, 336 GB/s of which LL has 0.08. An allgather
// turns to Simple at 14.1 us x 30.72 x 384 / (384 - 30.72) GB/s = 471 kB, an allreduce at 23.2 us x
// 15.36 x 192 / (192 - 15.36) = 387 kB.
TEST(RcclTables, AreItsOwn) {
  const Chooser mi300("mi300x");
  EXPECT_NEAR(mi300.latency_us({}, kRing, kLl, Collective::allgather), 12 + 7 * 0.8, 1e-9);
  EXPECT_NEAR(mi300.latency_us({}, kRing, kSimple, Collective::allgather), 17 + 7 * 2.1, 1e-9);
  EXPECT_NEAR(mi300.gbps({}, kRing, kLl, Collective::allgather), 0.08 * 336 * 8 / 7, 1e-9);
  EXPECT_NEAR(mi300.latency_us({}, kRing, kLl), 12 + 14 * 0.8, 1e-9);
  EXPECT_NEAR(mi300.latency_us({}, kTree, kLl), 12 + 14 * 0.9, 1e-9);
  // 64 << 6 = 4 KiB: the first row of trees that is not a tenth.
  EXPECT_NEAR(mi300.gbps({}, kTree, kLl, Collective::allreduce, 4096), 0.06 * 336 / 2, 1e-9);
  EXPECT_NEAR(mi300.gbps({}, kTree, kLl, Collective::allreduce, 2048), 0.006 * 336 / 2, 1e-9);
  EXPECT_NEAR(mi300.gbps({}, kRing, kLl, Collective::broadcast), 0.08 * 1.65 * 336, 1e-9);
  EXPECT_NEAR(mi300.latency_us({}, kRing, kSimple, Collective::broadcast), 17 + 8 * 2.3, 1e-9);
  for (const Collective collective :
       {Collective::allgather, Collective::allreduce, Collective::reducescatter}) {
    EXPECT_EQ(mi300.word(collective, 256 * kKib, {}), "ring ll") << to_string(collective);
    EXPECT_EQ(mi300.word(collective, 512 * kKib, {}), "ring simple") << to_string(collective);
  }
  EXPECT_EQ(Chooser::cell(mi300.choose({}), kTree, kSimple).why_not, "between nodes only");
}

}  // namespace
}  // namespace espalier
