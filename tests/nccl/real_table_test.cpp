// SPDX-License-Identifier: Apache-2.0
// What NCCL 2.28.9 itself says of two and of four nodes with one H100 each, joined by sockets:
// graph, table and choices. Source: NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING,COLL,
// measured by the project on 2026-11-26. Each process had an H100 of its own in NCCL's eyes
// (NCCL_HOSTID), and the network was the loopback device, to which NCCL gives 10 Gb/s. The lines of
// the logs of rank 0 are in tests/nccl/logs/.
//
// Not compared: threads of collnet and NVLS, which this machine lacks (the log has 640 at most, the
// model 512, those that move data); latencies of cells that NCCL leaves empty (0.0/0.0), and those
// of collnet under LL and LL128, which it does not have.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "nccl/node_trees.h"
#include "nccl/tuner.h"
#include "nccl/work.h"
#include "tests/nccl/chooser.h"

namespace espalier {
namespace {

constexpr NcclVersion kVersion{28};
constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr auto kRing = NcclAlgorithm::ring;
constexpr auto kTree = NcclAlgorithm::tree;
constexpr auto kPat = NcclAlgorithm::pat;
constexpr auto kLl = NcclProtocol::ll;
constexpr auto kLl128 = NcclProtocol::ll128;
constexpr auto kSimple = NcclProtocol::simple;

// A path over a CPU (PHB) to a network of 1.25 GB/s.
constexpr std::string_view kMachine = R"(
schema: espalier.topology/1
name: h100-socket
sources: ["NCCL 2.28.9's log: GPU and NIC on one CPU, NET 1.25 GB/s", estimate]
models:
  h100-sxm5: {memory_gbps: 2500, reduce_gbps: 830}
nodes:
  - {name: gpu0, kind: gpu, model: h100-sxm5, numa: 0}
  - {name: cpu0, kind: cpu, numa: 0}
  - {name: nic0, kind: nic, numa: 0}
  - {name: ethswitch, kind: fabric}
links:
  - {a: gpu0, b: cpu0, kind: pcie5x16, gbps: 63, latency_us: 0.25}
  - {a: nic0, b: cpu0, kind: pcie5x16, gbps: 63, latency_us: 0.25}
  - {a: nic0, b: ethswitch, kind: ethernet, gbps: 1.25, latency_us: 12.5}
cluster: {nodes: 1, max_nodes: 4, shared: [ethswitch]}
)";

const Chooser& of_nodes(int nodes) {
  static const Chooser two(parse_topology(kMachine, "h100-socket.yaml", 2));
  static const Chooser four(parse_topology(kMachine, "h100-socket.yaml", 4));
  return nodes == 2 ? two : four;
}

/// A cell of the table as the log has it, with one digit after the point.
struct Cell {
  Collective collective;
  NcclAlgorithm algorithm;
  NcclProtocol protocol;
  double latency_us;
  double gbps;
};

const std::vector<Cell>& table_of(int nodes) {
  using enum Collective;
  static const std::vector<Cell> two = {
      {broadcast, kRing, kLl, 9.3, 0.6},
      {broadcast, kRing, kLl128, 18.0, 0},
      {broadcast, kRing, kSimple, 22.4, 1.2},
      {reduce, kRing, kLl, 9.3, 0.6},
      {reduce, kRing, kLl128, 18.0, 0},
      {reduce, kRing, kSimple, 22.4, 1.2},
      {allgather, kRing, kLl, 11.6, 1.2},
      {allgather, kRing, kLl128, 22.5, 0},
      {allgather, kRing, kSimple, 22.4, 2.4},
      {allgather, kPat, kSimple, 17.6, 1.8},
      {reducescatter, kRing, kLl, 11.6, 1.2},
      {reducescatter, kRing, kLl128, 22.5, 0},
      {reducescatter, kRing, kSimple, 22.4, 2.4},
      {reducescatter, kPat, kSimple, 17.6, 1.8},
      {allreduce, kTree, kLl, 16.8, 0.2},
      {allreduce, kTree, kLl128, 31.0, 0},
      {allreduce, kTree, kSimple, 36.4, 0.9},
      {allreduce, kRing, kLl, 16.6, 0.6},
      {allreduce, kRing, kLl128, 31.0, 0},
      {allreduce, kRing, kSimple, 36.4, 1.2},
      {allreduce, NcclAlgorithm::collnet_direct, kSimple, 14.0, 0},
      {allreduce, NcclAlgorithm::collnet_chain, kSimple, 14.0, 0}};
  static const std::vector<Cell> four = {
      {broadcast, kRing, kLl, 9.3, 0.6},
      {broadcast, kRing, kLl128, 18.0, 0},
      {broadcast, kRing, kSimple, 22.4, 1.2},
      {reduce, kRing, kLl, 9.3, 0.6},
      {reduce, kRing, kLl128, 18.0, 0},
      {reduce, kRing, kSimple, 22.4, 1.2},
      {allgather, kRing, kLl, 21.6, 0.8},
      {allgather, kRing, kLl128, 39.5, 0},
      {allgather, kRing, kSimple, 50.4, 1.6},
      {allgather, kPat, kSimple, 27.2, 0.9},
      {reducescatter, kRing, kLl, 21.6, 0.8},
      {reducescatter, kRing, kLl128, 39.5, 0},
      {reducescatter, kRing, kSimple, 50.4, 1.6},
      {reducescatter, kPat, kSimple, 27.2, 0.9},
      {allreduce, kTree, kLl, 26.8, 0.1},
      {allreduce, kTree, kLl128, 48.0, 0},
      {allreduce, kTree, kSimple, 64.4, 0.5},
      {allreduce, kRing, kLl, 36.6, 0.4},
      {allreduce, kRing, kLl128, 65.0, 0},
      {allreduce, kRing, kSimple, 92.4, 0.8},
      {allreduce, NcclAlgorithm::collnet_direct, kSimple, 14.0, 0},
      {allreduce, NcclAlgorithm::collnet_chain, kSimple, 14.0, 0}};
  return nodes == 2 ? two : four;
}

/// A call of so many bytes in all, and what was chosen for it. The log has what one rank gives to
/// an allgather or gets of a reducescatter.
struct Call {
  double bytes;
  const char* word;
  int channels;
};

void expect_calls(int nodes, const std::vector<Collective>& collectives,
                  const std::vector<Call>& calls) {
  for (const Collective collective : collectives) {
    for (const Call& call : calls) {
      const NcclChoice choice = of_nodes(nodes).choose({collective, call.bytes, kVersion});
      EXPECT_EQ(of_nodes(nodes).word(collective, call.bytes, kVersion), call.word)
          << nodes << " nodes, " << to_string(collective) << " of " << call.bytes;
      EXPECT_EQ(choice.work.channels, call.channels)
          << nodes << " nodes, " << to_string(collective) << " of " << call.bytes;
    }
  }
}

class RealNccl : public testing::TestWithParam<int> {};

// "Pattern 4, nChannels 1, bw 1.2/1.2, sameChannels 1", "Pattern 3, ..., bw 2.4/1.2": the tuner
// counts the first of the two rates between two nodes, the second between more. "2 coll channels",
// "2 p2p channels".
TEST_P(RealNccl, FindsTheGraph) {
  const int nodes = GetParam();
  const NcclChoice choice = of_nodes(nodes).choose({Collective::allreduce, 8, kVersion});
  EXPECT_EQ(choice.machine.nodes, nodes);
  EXPECT_EQ(choice.graph.channels, 1);
  EXPECT_NEAR(choice.graph.rate_gbps, 1.2, 1e-9);
  EXPECT_NEAR(choice.graph.tree_rate_gbps, nodes == 2 ? 2.4 : 1.2, 1e-9);
  EXPECT_TRUE(choice.graph.same_order);
  ASSERT_EQ(choice.graph.rings.size(), 1U);
  for (int rank = 0; rank < nodes; ++rank) {  // "Channel 00/02 : 0 1 2 3", and of 01/02 the same
    EXPECT_EQ(choice.graph.rings[0].order[static_cast<std::size_t>(rank)], rank);
  }
  EXPECT_EQ(nccl_blocks(choice.graph), 2);
  EXPECT_EQ(nccl_p2p_blocks(choice.graph), 2);
  EXPECT_EQ(choice.graph.nvls_channels, 0);
  EXPECT_FALSE(choice.graph.pxn) << "use ring PXN 0";
}

// "Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1" of two nodes, "[0] 2/-1/-1->0->-1 [1]
// -1/-1/-1->0->1" of four: rank 0 is the top of the first tree and has one child there; in the
// second it is a leaf below rank 1.
TEST_P(RealNccl, JoinsNodesByTheTrees) {
  const auto [first, second] = nccl_node_trees(GetParam());
  using Children = std::array<int, 2>;
  constexpr int kNone = BinaryTree::kNone;
  EXPECT_EQ(first.top, 0);
  EXPECT_EQ(first.children[0], (Children{GetParam() == 2 ? 1 : 2, kNone}));
  EXPECT_EQ(second.children[0], (Children{kNone, kNone}));
  EXPECT_EQ(std::ranges::count(second.children[1], 0), 1);
}

TEST_P(RealNccl, FillsTheTable) {
  const Chooser& chooser = of_nodes(GetParam());
  constexpr double kDigits = 0.05 + 1e-6;  // to one digit
  for (const Cell& cell : table_of(GetParam())) {
    const std::string what = std::string(to_string(cell.collective)) + " " +
                             std::string(to_string(cell.algorithm)) + " " +
                             std::string(to_string(cell.protocol));
    EXPECT_NEAR(chooser.latency_us(kVersion, cell.algorithm, cell.protocol, cell.collective, 8),
                cell.latency_us, kDigits)
        << what;
    EXPECT_NEAR(chooser.gbps(kVersion, cell.algorithm, cell.protocol, cell.collective, kGib),
                cell.gbps, kDigits)
        << what;
  }
}

// Every other cell has a bandwidth of 0.
TEST_P(RealNccl, RulesOutTheRestOfTheTable) {
  for (const Collective collective :
       {Collective::broadcast, Collective::reduce, Collective::allgather, Collective::reducescatter,
        Collective::allreduce}) {
    const NcclChoice choice = of_nodes(GetParam()).choose({collective, 8, kVersion});
    for (const NcclCell& cell : choice.cells) {
      const bool is_listed = std::ranges::any_of(table_of(GetParam()), [&](const Cell& listed) {
        return listed.collective == collective && listed.algorithm == cell.algorithm &&
               listed.protocol == cell.protocol && listed.gbps > 0;
      });
      EXPECT_EQ(cell.gbps > 0, is_listed)
          << to_string(collective) << " " << to_string(cell.algorithm) << " "
          << to_string(cell.protocol);
      EXPECT_EQ(cell.why_not.empty(), is_listed);
    }
  }
}

// "Max NThreads": trees 512/640/512, rings 512/640/256.
TEST_P(RealNccl, HasItsThreads) {
  const NcclGraph graph = of_nodes(GetParam()).choose({Collective::allreduce, 8, kVersion}).graph;
  EXPECT_EQ(most_nccl_threads(kTree, kLl, graph, kVersion), 512);
  EXPECT_EQ(most_nccl_threads(kTree, kLl128, graph, kVersion), 640);
  EXPECT_EQ(most_nccl_threads(kTree, kSimple, graph, kVersion), 512);
  EXPECT_EQ(most_nccl_threads(kRing, kLl, graph, kVersion), 512);
  EXPECT_EQ(most_nccl_threads(kRing, kLl128, graph, kVersion), 640);
  EXPECT_EQ(most_nccl_threads(kRing, kSimple, graph, kVersion), 256);
}

INSTANTIATE_TEST_SUITE_P(Nodes, RealNccl, testing::Values(2, 4));

// "channel{Lo..Hi}={0..1}": two.
TEST(RealNcclChoices, OfTwoNodes) {
  expect_calls(2, {Collective::allreduce},
               {{8, "ring ll", 1},
                {1024, "ring ll", 1},
                {16384, "ring ll", 2},
                {65536, "ring simple", 2},
                {262144, "ring simple", 2},
                {1048576, "ring simple", 2},
                {4194304, "ring simple", 2},
                {16777216, "ring simple", 2}});
  expect_calls(2, {Collective::allgather, Collective::reducescatter},
               {{2 * 4, "ring ll", 1},
                {2 * 512, "ring ll", 1},
                {2 * 8192, "ring ll", 2},
                {2 * 32768, "ring simple", 2},
                {2 * 131072, "ring simple", 2},
                {2 * 524288, "ring simple", 2},
                {2 * 2097152, "ring simple", 2},
                {2 * 8388608, "ring simple", 2}});
}

TEST(RealNcclChoices, OfFourNodes) {
  expect_calls(4, {Collective::allreduce},
               {{8, "tree ll", 1},
                {1024, "tree ll", 1},
                {16384, "ring ll", 1},
                {65536, "ring ll", 2},
                {262144, "ring simple", 2},
                {1048576, "ring simple", 2},
                {4194304, "ring simple", 2},
                {16777216, "ring simple", 2}});
  expect_calls(4, {Collective::allgather, Collective::reducescatter},
               {{4 * 4, "ring ll", 1},
                {4 * 256, "ring ll", 1},
                {4 * 4096, "ring ll", 1},
                {4 * 16384, "ring simple", 2},
                {4 * 65536, "ring simple", 2},
                {4 * 262144, "ring simple", 2},
                {4 * 1048576, "ring simple", 2},
                {4 * 4194304, "ring simple", 2}});
}

TEST(RealNcclChoices, OfRootedCollectives) {
  for (const int nodes : {2, 4}) {
    expect_calls(nodes, {Collective::broadcast, Collective::reduce},
                 {{8, "ring ll", 1},
                  {1024, "ring ll", 1},
                  {16384, "ring simple", 1},
                  {65536, "ring simple", 2},
                  {262144, "ring simple", 2},
                  {1048576, "ring simple", 2},
                  {4194304, "ring simple", 2},
                  {16777216, "ring simple", 2}});
  }
}

}  // namespace
}  // namespace espalier
