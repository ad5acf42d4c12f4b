// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/adjacency.h"
#include "topologies/load.h"

namespace espalier {
namespace {

std::string cell(const Topology& topology, int a, int b) {
  const std::vector<NodeId> gpus = topology.gpus();
  const std::string there = adjacency(topology, gpus.at(a), gpus.at(b));
  EXPECT_EQ(adjacency(topology, gpus.at(b), gpus.at(a)), there) << "not symmetric";
  return there;
}

TEST(Adjacency, Dgx1IsAsNvidiaSmiPrintsIt) {
  // The matrix of a DGX-1V in the source of MXNet (src/kvstore/gpu_topology.h): 0 none, 1 one
  // NVLink, 2 two.
  constexpr int kNvlinks[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0},
                                  {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
                                  {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                  {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};
  const Topology dgx1 = load_topology("dgx1-v100");
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < 8; ++b) {
      const std::string expected = a == b               ? "X"
                                   : kNvlinks[a][b] > 0 ? "NV" + std::to_string(kNvlinks[a][b])
                                                        : "SYS";
      EXPECT_EQ(cell(dgx1, a, b), expected) << a << ' ' << b;
    }
  }
}

TEST(Adjacency, SwitchesInsideTheGpuFabricCount) {
  EXPECT_EQ(cell(load_topology("dgx-a100"), 0, 7), "NV12");
}

TEST(Adjacency, PcieDistances) {
  // Two GK210 of a K80 share a switch; other cards are reached over further switches.
  const Topology p2 = load_topology("p2.8xlarge");
  EXPECT_EQ(cell(p2, 0, 1), "PIX");
  EXPECT_EQ(cell(p2, 0, 2), "PXB");
}

TEST(Adjacency, CpusInBetween) {
  const Topology host = load_topology("line:n=3,host_gbps=8");
  EXPECT_EQ(cell(host, 0, 1), "L1");
  EXPECT_EQ(cell(host, 0, 2), "PHB");
  EXPECT_EQ(cell(load_topology("mist"), 0, 2), "SYS");
  EXPECT_EQ(cell(load_topology("line:n=3"), 0, 2), "-");
}

TEST(Adjacency, OtherHosts) { EXPECT_EQ(cell(load_topology("mist:nodes=2"), 0, 5), "NET"); }

}  // namespace
}  // namespace espalier
