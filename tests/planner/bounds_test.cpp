// SPDX-License-Identifier: Apache-2.0
// Bounds against optima worked out by hand; the arithmetic stands beside each figure.
#include "planner/bounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "topologies/load.h"

namespace espalier {
namespace {

Bound bound(const std::string& machine, Collective collective, std::vector<int> gpus = {},
            LinkScope scope = LinkScope::fabric, int root = 0, BoundOptions options = {}) {
  const Topology topology = load_topology(machine);
  const Router router(topology, topology.profile("ideal"), scope);
  return bandwidth_bound(collective, root, router, place_ranks(router, gpus), options);
}

TEST(Bounds, AllreduceOfADgx1IsTheTreePackingOfThePaper) {
  // 24 NVLinks of 25 GB/s, 8 parts: 24 / 7 x 25 = 85.714 (C(G) = 7/24, spanning tree polytope
  // paper).
  const Bound v100 = bound("dgx1-v100", Collective::allreduce);
  EXPECT_DOUBLE_EQ(v100.algbw_gbps, 600.0 / 7);
  EXPECT_EQ(v100.kind, "partition");
  // A quad has 3 double and 3 single links: 9 / 3 x 25 = 75 (C(G) = 1/3).
  EXPECT_DOUBLE_EQ(bound("p3.8xlarge", Collective::allreduce).algbw_gbps, 75);
  EXPECT_DOUBLE_EQ(bound("dgx1-v100", Collective::allreduce, {0, 1, 2, 3}).algbw_gbps, 75);
  // P100: 16 links of 20 GB/s, 16 / 7 x 20; a quad has 6: 6 / 3 x 20 = 40.
  EXPECT_DOUBLE_EQ(bound("dgx1-p100", Collective::allreduce).algbw_gbps, 320.0 / 7);
  EXPECT_DOUBLE_EQ(bound("dgx1-p100", Collective::allreduce, {0, 1, 2, 3}).algbw_gbps, 40);
}

TEST(Bounds, BroadcastIsTheLeastMaximumFlow) {
  // Every GPU of a DGX-1 V100 has 6 links of 25, of a P100 4 of 20; 3 within a P100 quad.
  EXPECT_DOUBLE_EQ(bound("dgx1-v100", Collective::broadcast).algbw_gbps, 150);
  EXPECT_DOUBLE_EQ(bound("dgx1-p100", Collective::broadcast).algbw_gbps, 80);
  EXPECT_DOUBLE_EQ(bound("dgx1-p100", Collective::broadcast, {0, 1, 2, 3}).algbw_gbps, 60);
  EXPECT_DOUBLE_EQ(bound("dgx1-p100", Collective::reduce, {0, 1, 2, 3}).algbw_gbps, 60);
}

TEST(Bounds, RingsAndLines) {
  // n GPUs, 25 GB/s each way: 2n x 25 leave the n parts, 2(n-1) messages: 25 n / (n-1).
  for (const int n : {3, 4, 8, 10, 16, 100}) {
    const std::string ring = "ring:n=" + std::to_string(n) + ",gbps=25";
    EXPECT_NEAR(bound(ring, Collective::allreduce).algbw_gbps, 25.0 * n / (n - 1), 1e-9) << n;
    // Two links into each GPU bring (n-1)/n of the message: 50 n / (n-1).
    EXPECT_NEAR(bound(ring, Collective::allgather).algbw_gbps, 50.0 * n / (n - 1), 1e-9) << n;
    EXPECT_NEAR(bound(ring, Collective::reducescatter).algbw_gbps, 50.0 * n / (n - 1), 1e-9) << n;
  }
  // The end of a line has one link: every byte must leave it once.
  EXPECT_DOUBLE_EQ(bound("line:n=5,gbps=25", Collective::allreduce).algbw_gbps, 25);
  // Alltoall over the middle link of 4: 2 x 2 blocks of M/4 = M cross it.
  EXPECT_DOUBLE_EQ(bound("line:n=4,gbps=25", Collective::alltoall).algbw_gbps, 25);
}

TEST(Bounds, HalfDuplexLinksCarryOneDirectionAtATime) {
  // Two GPUs exchange their inputs over one medium: M each way, 2M over 25 GB/s.
  EXPECT_DOUBLE_EQ(bound("line:n=2,gbps=25,half=1", Collective::allreduce).algbw_gbps, 12.5);
  EXPECT_DOUBLE_EQ(bound("line:n=2,gbps=25,half=0", Collective::allreduce).algbw_gbps, 25);
  // A broadcast uses one direction only.
  EXPECT_DOUBLE_EQ(bound("line:n=2,gbps=25,half=1", Collective::broadcast).algbw_gbps, 25);
}

TEST(Bounds, SwitchedMachines) {
  // n GPUs on a switch, B each way: n B leave the parts, 2(n-1) messages: B n / (2(n-1)).
  for (const int n : {2, 5, 8, 9, 64}) {
    const std::string machine = "switch:n=" + std::to_string(n) + ",gbps=100";
    EXPECT_NEAR(bound(machine, Collective::allreduce).algbw_gbps, 50.0 * n / (n - 1), 1e-9) << n;
    EXPECT_NEAR(bound(machine, Collective::allgather).algbw_gbps, 100.0 * n / (n - 1), 1e-9) << n;
    EXPECT_DOUBLE_EQ(bound(machine, Collective::broadcast).algbw_gbps, 100) << n;
  }
}

TEST(Bounds, OneRankHasNoBound) {
  EXPECT_TRUE(std::isinf(bound("switch:n=1", Collective::allreduce).algbw_gbps));
}

TEST(Bounds, HelpersThatCombineLeaveOnlyTheCuts) {
  // A server on the switch's host could combine: each GPU then sends and receives the message once.
  EXPECT_DOUBLE_EQ(
      bound("switch:n=8,gbps=100", Collective::allreduce, {}, LinkScope::fabric, 0, {true})
          .algbw_gbps,
      100);
}

TEST(Bounds, CertificatesNameTheGpus) {
  EXPECT_EQ(bound("line:n=2,gbps=25", Collective::broadcast).certificate,
            "the links out of {gpu0} carry 25 GB/s and 1 of the message must cross them: "
            "25 / 1 = 25 GB/s");
  EXPECT_EQ(
      bound("full:n=3,gbps=10", Collective::allreduce).certificate,
      "{gpu0} | {gpu1} | {gpu2}: the links out of the 3 parts carry 60 GB/s together and every "
      "byte takes 2 x (3 - 1) = 4 messages between parts: 60 / 4 = 15 GB/s");
}

TEST(Bounds, AWeakBridgeIsFoundAmongAllPartitions) {
  // 6 GPUs of a DGX-1 V100 that straddle both quads; brute force over all 203 partitions is what
  // `bandwidth_bound` does. By hand: {2} has links to 1 (2), 3 (2), 6 (1) inside {1,2,3,5,6,7};
  // all inside: 1-2:2 1-3:1 1-5:2 2-3:2 2-6:1 3-7:1 5-6:2 5-7:1 6-7:2 = 14 links, 14/5 = 2.8 links;
  // two parts {1,2,3} | {5,6,7}: 2+1+1 = 4 links / 1; {1,2,3} whole, others single: 4 + 5 = 9 links
  // / 3 = 3; single {3}: 1+2+1 = 4 links. So the singletons bind: 2.8 x 25 = 70.
  EXPECT_DOUBLE_EQ(bound("dgx1-v100", Collective::allreduce, {1, 2, 3, 5, 6, 7}).algbw_gbps, 70);
}

}  // namespace
}  // namespace espalier
