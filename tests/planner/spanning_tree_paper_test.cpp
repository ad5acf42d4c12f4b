// SPDX-License-Identifier: Apache-2.0
// Results of the paper on the spanning tree polytope. Its C(G) is the time to aggregate a message
// when one NVLink takes time 1 for it: with links of 25 GB/s, 25 / algbw. C of a schedule is the
// time its busiest link direction takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/bounds.h"
#include "planner/pack_allreduce.h"
#include "scenarios/study.h"
#include "sim/simulator.h"
#include "tests/oracle/ask.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

constexpr double kLinkGbps = 25;
constexpr std::int64_t kBytes = std::int64_t{1} << 24;

/// What an algorithm loads the links with, uncut.
std::vector<LinkUse> link_uses(const std::string& machine, const std::string& algorithm,
                               const std::vector<int>& gpus = {},
                               LinkScope links = LinkScope::all) {
  Query query = oracle::question(machine, Collective::allreduce, algorithm, kBytes);
  query.gpus = gpus;
  query.links = links;
  return oracle::run(query).simulated->links;
}

double c_of(const std::vector<LinkUse>& uses) {
  double busiest_s = 0;
  for (const LinkUse& use : uses) busiest_s = std::max(busiest_s, use.busy_s);
  return busiest_s * kLinkGbps * 1e9 / static_cast<double>(kBytes);
}

/// The ring of double NVLinks: 16 of the 24 links.
const std::vector<int> kDualRing = {0, 3, 2, 1, 5, 6, 7, 4};

Forest optimum(const std::string& machine) {
  const Topology topology = load_topology(machine);
  const Router router(topology, topology.profile("ideal"), LinkScope::fabric);
  return pack_allreduce(router, place_ranks(router, {}));
}

TEST(SpanningTreePaper, OptimalSchedules) {
  // C = 7/24: 25 x 24 / 7 = 600 / 7 GB/s. C = 1/3: 25 x 3 = 75 GB/s.
  EXPECT_EQ(optimum("p3.16xlarge").exact_algbw, "600/7");
  EXPECT_EQ(optimum("p3.8xlarge").exact_algbw, "75");
  // The program does to the links what the plan says.
  EXPECT_NEAR(c_of(link_uses("p3.16xlarge", "optimal:strips=0", {}, LinkScope::fabric)), 7.0 / 24,
              1e-9);
  EXPECT_NEAR(c_of(link_uses("p3.8xlarge", "optimal:strips=0", {}, LinkScope::fabric)), 1.0 / 3,
              1e-9);
}

TEST(SpanningTreePaper, TheBestSingleTreeIsOfDoubleLinks) {
  // Every link of the tree carries the message once each way, double ones in time 1/2. No tree does
  // better, as no two GPUs have more than two links. A chain of double links is such a tree.
  EXPECT_NEAR(c_of(link_uses("p3.16xlarge", "optimal:trees=1,strips=0", {}, LinkScope::fabric)),
              0.5, 1e-9);
  EXPECT_NEAR(c_of(link_uses("p3.16xlarge", "chain", kDualRing, LinkScope::fabric)), 0.5, 1e-9);
}

TEST(SpanningTreePaper, EightRotatedChainsOfTheDualRing) {
  // Each of the ring's eight edges is left out by one of the eight chains: 7/8 of 1/2, in every
  // direction of all eight.
  const std::vector<LinkUse> uses =
      link_uses("p3.16xlarge", "chain:rotated=1", kDualRing, LinkScope::fabric);
  EXPECT_EQ(uses.size(), 16U);
  for (const LinkUse& use : uses) EXPECT_NEAR(c_of({use}), 7.0 / 16, 1e-9) << use.name;
}

/// Bytes over the message of all links whose name begins and goes on like this, which must agree.
double load(const std::vector<LinkUse>& uses, const std::string& from, const std::string& to) {
  double loads = -1;
  for (const LinkUse& use : uses) {
    const std::size_t arrow = use.name.find("->");
    if (use.name.rfind(from, 0) != 0 || use.name.compare(arrow + 2, to.size(), to) != 0) continue;
    const double share = use.bytes / static_cast<double>(kBytes);
    if (loads < 0) loads = share;
    EXPECT_NEAR(share, loads, 1e-9) << use.name;
  }
  EXPECT_GE(loads, 0) << from << "->" << to;
  return loads;
}

TEST(SpanningTreePaper, LinkUseOfP2) {
  // Averaged over 16 roots, going up: 15 of 16 GPUs send over their card link; 7 of 8 cards over
  // their uplink; one half to the other for half of the roots. The way down does the same again in
  // the other direction: twice 15/16, 14/16 and 8/16.
  const std::vector<LinkUse> large = link_uses("p2.16xlarge", "hierarchical_trees");
  EXPECT_NEAR(load(large, "gpu", "card"), 2 * 15.0 / 16, 1e-9);
  EXPECT_NEAR(load(large, "card", "gpu"), 2 * 15.0 / 16, 1e-9);
  EXPECT_NEAR(load(large, "card", "central"), 2 * 14.0 / 16, 1e-9);
  EXPECT_NEAR(load(large, "central", "card"), 2 * 14.0 / 16, 1e-9);
  EXPECT_NEAR(load(large, "central", "central"), 2 * 8.0 / 16, 1e-9);
  // Eight GPUs on four cards below one switch: 7 : 6.
  const std::vector<LinkUse> small = link_uses("p2.8xlarge", "hierarchical_trees");
  EXPECT_NEAR(load(small, "gpu", "card"), 2 * 7.0 / 8, 1e-9);
  EXPECT_NEAR(load(small, "card", "central"), 2 * 6.0 / 8, 1e-9);
}

TEST(SpanningTreePaper, TheGeneralPlannerComesToTheSameLinkUse) {
  // n GPUs with links of B: trees have 2 (n-1) ends of edges, so all links of GPUs are full at
  // B n / (2 (n-1)), each crossed 2 (n-1) / n times. Of such packings `optimal` takes the one that
  // keeps links least busy: both GPUs of a card are then joined inside it in every tree, and as
  // their links carry 2 x 30/16 together, 2 of it for the edge between them, the uplink carries
  // 28/16. The halves are joined by one edge of every tree: 16/16. 30 : 28 : 16 = 15 : 14 : 8.
  // Weights are rounded to whole units there, which moves loads by some thousandths.
  constexpr double kRounding = 0.006;
  const std::vector<LinkUse> large = link_uses("p2.16xlarge", "optimal:strips=0");
  for (const LinkUse& use : large) {
    const double share = use.bytes / static_cast<double>(kBytes);
    const bool in_card = use.name.find("gpu") != std::string::npos;
    const bool is_uplink = use.name.find("card") != std::string::npos;
    EXPECT_NEAR(share, (in_card ? 30 : is_uplink ? 28 : 16) / 16.0, kRounding) << use.name;
  }
  EXPECT_EQ(large.size(), 2U * (16 + 8 + 1));  // all but the links of the CPU and the NIC
  // Eight GPUs: 2 x 14/8 - 2 = 12/8 on the uplinks; 14 : 12 = 7 : 6. The CPU is left out.
  const std::vector<LinkUse> small = link_uses("p2.8xlarge", "optimal:strips=0");
  for (const LinkUse& use : small) {
    const double share = use.bytes / static_cast<double>(kBytes);
    const bool in_card = use.name.find("gpu") != std::string::npos;
    EXPECT_NEAR(share, (in_card ? 14 : 12) / 8.0, 1e-6) << use.name;
  }
  EXPECT_EQ(small.size(), 2U * (8 + 4));
}

TEST(SpanningTreePaper, TheBottleneckOfP2IsInsideTheCards) {
  // All links are alike, so the most used ones bind, and the schedule is optimal: 16 GPUs with
  // 15.75 GB/s each bring 16 x 15.75 / (2 x 15) = 8.4 GB/s; 8 x 15.75 / (2 x 7) = 9.
  for (const auto& [machine, optimum] :
       std::vector<std::pair<std::string, double>>{{"p2.16xlarge", 8.4}, {"p2.8xlarge", 9}}) {
    const std::vector<LinkUse> uses = link_uses(machine, "hierarchical_trees");
    double busiest_s = 0;
    for (const LinkUse& use : uses) busiest_s = std::max(busiest_s, use.busy_s);
    for (const LinkUse& use : uses) {
      const bool in_card = use.name.find("gpu") != std::string::npos;
      EXPECT_EQ(use.busy_s > busiest_s * (1 - 1e-9), in_card) << machine << " " << use.name;
    }
    EXPECT_NEAR(static_cast<double>(kBytes) / busiest_s * 1e-9, optimum, 1e-9) << machine;
    const Topology topology = load_topology(machine);
    const Router router(topology, topology.profile("ideal"));
    EXPECT_NEAR(
        bandwidth_bound(Collective::allreduce, 0, router, place_ranks(router, {})).algbw_gbps,
        optimum, 1e-9);
  }
}

}  // namespace
}  // namespace espalier
