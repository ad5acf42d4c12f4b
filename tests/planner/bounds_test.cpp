// SPDX-License-Identifier: Apache-2.0
// Bounds against optima worked out by hand; the arithmetic stands beside each figure.
#include "planner/bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ir/text.h"
#include "run/backend.h"
#include "run/routes.h"
#include "topologies/load.h"
#include "topologies/placement.h"

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
  EXPECT_EQ(v100.exact, "600/7");
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

TEST(Bounds, WhatLeavesAndWhatEntersShareHalfDuplexLinks) {
  // Two GPUs exchange halves of the message: M over 25 GB/s. One way alone would allow 50.
  for (const Collective collective : {Collective::allgather, Collective::reducescatter}) {
    const Bound pair = bound("line:n=2,gbps=25,half=1", collective);
    EXPECT_DOUBLE_EQ(pair.algbw_gbps, 25);
    EXPECT_EQ(pair.certificate,
              "the links between {gpu0} and the other GPUs carry 25 GB/s in both directions "
              "together, and "
              "1 of the message must cross them: 25 / 1 = 25 GB/s");
  }
  // Between the sockets: the X-bus's 64 both directions together and, both directions together,
  // what the adapter's port brings back from the network, 12.5. It does not pass on what comes from
  // its host. Every block crosses once. Plans take that detour only where it is asked for.
  const auto mist = [](LinkScope links) {
    return bound("mist", Collective::allgather, {}, links).algbw_gbps;
  };
  EXPECT_DOUBLE_EQ(mist(LinkScope::detours), 64 + 12.5);
  EXPECT_DOUBLE_EQ(mist(LinkScope::all), 64);
}

TEST(Bounds, NoProgramPassesBesideTheAdapter) {
  // Mist's bound above assumes that blocks can't cross by cpu0>nic0>cpu1. Nor may programs say so.
  const Topology topology = load_topology("mist");
  Router router(topology, topology.profile("ideal"));
  const auto problems = [&](const std::string& via) {
    const Program program = parse_program(
        "program beside\ncollective broadcast root 0\nranks 4\nunits 1\n"
        "0: r2.out[0] <- r0.in[0] via " +
            via + "\n",
        "beside.txt");
    std::vector<std::string> messages;
    for (const auto& problem : check_routes(program, {&router, place_ranks(router, {})})) {
      messages.push_back(problem.message);
    }
    return messages;
  };
  EXPECT_THAT(
      problems("cpu0>nic0>cpu1"),
      testing::ElementsAre("op 0: no route from r0 (gpu0) to r2 (gpu2) via cpu0>nic0>cpu1"));
  EXPECT_THAT(problems("nic0"),
              testing::ElementsAre("op 0: no route from r0 (gpu0) to r2 (gpu2) via nic0"));
  EXPECT_THAT(problems("cpu0>nic0>ibswitch>nic0>cpu1"), testing::IsEmpty());
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

TEST(Bounds, PricesAreACertificateWhereNoPartitionIs) {
  // Over PCIe as well, GPUs meet at the CPUs' ports, whose directions share 31.5 GB/s. Price 2 for
  // an NVLink bundle, 1 for a port and for an adapter's network link: every way between two GPUs
  // costs 2 (one bundle, or two ports), so a tree over 8 costs 7 x 2 = 14. In a second the links
  // carry 600 x 2 in NVLinks, 4 ports x 31.5 / 2 (both directions together) x 1, 4 adapters x 12.5:
  // 1200 + 63 + 50 = 1313.
  const Bound all = bound("dgx1-v100", Collective::allreduce, {}, LinkScope::detours);
  EXPECT_EQ(all.kind, "lp");
  EXPECT_EQ(all.exact, "1313/14");
  EXPECT_GT(all.algbw_gbps, 600.0 / 7);
  EXPECT_THAT(all.certificate, testing::HasSubstr("crossing a link costs 2 for gpu0-"));
  EXPECT_THAT(all.certificate, testing::HasSubstr("1313 / 14 = 93.7857 GB/s"));
  // Within the host, without the adapters: 1263.
  EXPECT_EQ(bound("dgx1-v100", Collective::allreduce, {}, LinkScope::all).exact, "1263/14");
}

/// LL128 leaves 15/16 of every link, bandwidths without a common measure: the search for prices,
/// link by link, ends before it finds the best, those of classes of links are found at once.
TEST(Bounds, AreTheSamePartOfAllLinksWhateverThatIs) {
  const Topology topology = load_topology("dgx-a100:nodes=4");
  const Profile simple = topology.profile("kernel");
  const auto bound_under = [&](const Profile& profile) {
    const Router router(topology, profile, LinkScope::all);
    return bandwidth_bound(Collective::allreduce, 0, router, place_ranks(router, {}));
  };
  const Bound all = bound_under(simple);
  const Bound part = bound_under(simple.under("ll128"));
  EXPECT_EQ(part.kind, "partition");
  EXPECT_NEAR(part.algbw_gbps, all.algbw_gbps * 15 / 16, 1e-6 * all.algbw_gbps);
}

/// Least capacity out of any vertex set with a rank set's ranks, over its demand: all vertex sets,
/// one by one. Full-duplex machines only.
double least_ratio(const Topology& topology, const std::vector<NodeId>& ranks,
                   const std::function<double(const std::vector<bool>&)>& demand) {
  double best = INFINITY;
  for (unsigned set = 1; set + 1 < 1U << topology.nodes.size(); ++set) {
    double out = 0;
    for (const Link& link : topology.links) {
      if ((set >> link.a & 1U) != (set >> link.b & 1U)) out += link.gbps * link.count;
    }
    std::vector<bool> inside;
    for (const NodeId rank : ranks) inside.push_back((set >> rank & 1U) != 0);
    const double need = demand(inside);
    if (need > 0) best = std::min(best, out / need);
  }
  return best;
}

TEST(Bounds, CutsOfSwitchedMachinesAgainstAllVertexSets) {
  constexpr unsigned kSeed = 11;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  for (int trial = 0; trial < 20; ++trial) {
    // Five GPUs and a switch; any two of the six may be linked, and every GPU is to the switch.
    Topology topology = load_topology("switch:n=5,gbps=1");
    const std::vector<NodeId> ranks = topology.gpus();
    ASSERT_EQ(topology.nodes.size(), 6U);
    Link sample = topology.links[0];
    for (Link& link : topology.links) link.gbps = static_cast<double>(1 + random() % 9);
    for (std::size_t a = 0; a < ranks.size(); ++a) {
      for (std::size_t b = a + 1; b < ranks.size(); ++b) {
        if (random() % 2 == 0) continue;
        sample.a = ranks[a];
        sample.b = ranks[b];
        sample.gbps = static_cast<double>(1 + random() % 9);
        topology.links.push_back(sample);
      }
    }
    ASSERT_TRUE(check_topology(topology).empty());
    const Router router(topology, topology.profile("ideal"), LinkScope::fabric);
    const Placement placement = place_ranks(router, {});
    const int root = static_cast<int>(random() % 5);
    const auto share = [](const std::vector<bool>& inside) {
      return static_cast<double>(std::count(inside.begin(), inside.end(), true)) / 5;
    };
    const std::map<Collective, std::function<double(const std::vector<bool>&)>> demands = {
        {Collective::broadcast,
         [&](const auto& inside) { return inside[root] && share(inside) < 1 ? 1.0 : 0.0; }},
        {Collective::reduce,
         [&](const auto& inside) { return !inside[root] && share(inside) > 0 ? 1.0 : 0.0; }},
        {Collective::allgather,
         [&](const auto& inside) { return share(inside) < 1 ? share(inside) : 0.0; }},
        {Collective::reducescatter,
         [&](const auto& inside) { return share(inside) > 0 ? 1 - share(inside) : 0.0; }},
        {Collective::gather,
         [&](const auto& inside) { return inside[root] ? 0.0 : share(inside); }},
        {Collective::scatter,
         [&](const auto& inside) { return inside[root] ? 1 - share(inside) : 0.0; }}};
    for (const auto& [collective, demand] : demands) {
      EXPECT_NEAR(bandwidth_bound(collective, root, router, placement).algbw_gbps,
                  least_ratio(topology, ranks, demand), 1e-9)
          << "trial " << trial << " " << to_string(collective);
    }
  }
}

TEST(Bounds, AWeakBridgeIsFoundAmongAllPartitions) {
  // 6 GPUs of a DGX-1 V100 that straddle both quads; the bound is the
  // weakest of all 203 partitions. By hand: {2} has links to 1 (2), 3 (2), 6 (1) inside
  // {1,2,3,5,6,7}; all inside: 1-2:2 1-3:1 1-5:2 2-3:2 2-6:1 3-7:1 5-6:2 5-7:1 6-7:2 = 14 links,
  // 14/5 = 2.8 links; two parts {1,2,3} | {5,6,7}: 2+1+1 = 4 links / 1; {1,2,3} whole, others
  // single: 4 + 5 = 9 links / 3 = 3; single {3}: 1+2+1 = 4 links. So the singletons bind: 2.8 x 25
  // = 70.
  EXPECT_DOUBLE_EQ(bound("dgx1-v100", Collective::allreduce, {1, 2, 3, 5, 6, 7}).algbw_gbps, 70);
}

}  // namespace
}  // namespace espalier
