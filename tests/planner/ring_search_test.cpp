// SPDX-License-Identifier: Apache-2.0
// Rings against counts worked out by hand, and every ring set against the links it may use.
#include "planner/ring_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "planner/bounds.h"
#include "planner/graph/fabric_links.h"
#include "tests/topologies/subsets.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

struct Machine {
  explicit Machine(const std::string& spec, LinkScope scope = LinkScope::fabric)
      : topology(load_topology(spec)), router(topology, topology.profile("ideal"), scope) {}

  RingSet rings(const std::vector<int>& gpus, const RingOptions& options = {}) const {
    return find_rings(router, place_ranks(router, gpus), options);
  }

  Topology topology;
  Router router;
};

/// Ring allreduce over k channels (one way round each) of `gbps` on n ranks: every channel carries
/// 2 (n - 1) / n of its share over each hop.
double ring_algbw(const RingSet& set, int n, double gbps) {
  const double channels = static_cast<double>(set.rings.size()) * (set.both_ways ? 2 : 1);
  return channels * gbps * n / (2.0 * (n - 1));
}

/// Every ring passes through every rank once, hops have links or relays, and no direction of a link
/// is taken more often than it has units.
void expect_disjoint(const Machine& machine, const std::vector<int>& gpus, const RingSet& set) {
  const Placement placement = place_ranks(machine.router, gpus);
  std::vector<int> ranks(gpus.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const FabricLinks links(machine.router, placement, ranks);
  std::map<std::pair<int, int>, int> taken;
  for (const Ring& ring : set.rings) {
    std::vector<int> sorted = ring.order;
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(sorted, ranks);
    ASSERT_EQ(ring.relays.size(), ranks.size());
    std::vector<Ring> ways = {ring};
    if (set.both_ways) ways.push_back(ring.reversed());
    for (const Ring& way : ways) {
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        const int from = way.order[i], to = way.order[(i + 1) % ranks.size()];
        if (way.relays[i] < 0) {
          ++taken[{from, to}];
        } else {
          EXPECT_EQ(links.units(from, to), 0) << "a relay where there is a link";
          ++taken[{from, way.relays[i]}];
          ++taken[{way.relays[i], to}];
        }
      }
    }
  }
  for (const auto& [pair, units] : taken) {
    EXPECT_LE(units, links.units(pair.first, pair.second)) << pair.first << "->" << pair.second;
  }
}

TEST(RingSearch, TheWholeDgx1IsEdgeDisjointHamiltonianCycles) {
  // V100: 8 double and 8 single links are 24 units, three cycles of 8. Algbw 24/7 x 25.
  const RingSet v100 = Machine("dgx1-v100").rings({});
  EXPECT_EQ(v100.kind, RingKind::direct);
  EXPECT_EQ(v100.rings.size(), 3U);
  EXPECT_TRUE(v100.both_ways);
  EXPECT_DOUBLE_EQ(ring_algbw(v100, 8, 25), 24.0 / 7 * 25);
  // P100: 16 links, two cycles. Algbw 16/7 x 20.
  const RingSet p100 = Machine("dgx1-p100").rings({});
  EXPECT_EQ(p100.rings.size(), 2U);
  EXPECT_DOUBLE_EQ(ring_algbw(p100, 8, 20), 16.0 / 7 * 20);
}

TEST(RingSearch, SixGpusOfAP100UseSixLinks) {
  // Degrees 3 and 4 allow one cycle only: six links of the eight or nine that there are.
  const RingSet set = Machine("dgx1-p100").rings({0, 1, 2, 3, 4, 5});
  EXPECT_EQ(set.kind, RingKind::direct);
  ASSERT_EQ(set.rings.size(), 1U);
  EXPECT_EQ(set.rings[0].order.size(), 6U);
}

TEST(RingSearch, EveryConnectedSubsetOfADgx1KeepsToItsLinks) {
  for (const char* name : {"dgx1-p100", "dgx1-v100"}) {
    const Machine machine(name);
    ASSERT_EQ(connected_subsets(name).size(), 197U);  // of 247 with two or more GPUs
    for (const std::vector<int>& gpus : connected_subsets(name)) {
      SCOPED_TRACE(fmt::format("{} {}", name, fmt::join(gpus, ",")));
      const RingSet set = machine.rings(gpus);
      // A chain of four or more GPUs has no ring of single relays; it has none of links either.
      if (set.rings.empty()) {
        EXPECT_NE(set.why_not, "");
        continue;
      }
      EXPECT_TRUE(set.kind == RingKind::direct || set.kind == RingKind::relayed);
      expect_disjoint(machine, gpus, set);
    }
  }
}

/// The optimum of allreduce over what direct rings reach, by subset.
std::map<std::vector<int>, double> gain_over_rings(const std::string& name, double gbps) {
  const Machine machine(name);
  std::map<std::vector<int>, double> gains;
  for (const std::vector<int>& gpus : connected_subsets(name)) {
    const int n = static_cast<int>(gpus.size());
    const RingSet set = machine.rings(gpus, {false});
    if (n < 3 || set.rings.empty()) continue;
    const Bound bound = bandwidth_bound(Collective::allreduce, 0, machine.router,
                                        place_ranks(machine.router, gpus));
    gains[gpus] = bound.algbw_gbps / ring_algbw(set, n, gbps);
  }
  return gains;
}

TEST(RingSearch, GainOfTheOptimumOverRingsOnP100) {
  std::map<std::size_t, std::set<double>> by_size;
  for (const auto& [gpus, gain] : gain_over_rings("dgx1-p100", 20)) {
    by_size[gpus.size()].insert(std::round(gain * 1e6) / 1e6);
  }
  // 3: a triangle's 3 links / 2 against 3/2 B. 4: a complete quad's 6 links / 3 = 2 B against one
  // ring, 4/3 B; a square's 4 / 3 B is the ring.
  EXPECT_EQ(by_size[3], (std::set<double>{1}));
  EXPECT_EQ(by_size[4], (std::set<double>{1, 1.5}));
  // 5 with a ring: 6 links / 4 = 3/2 B against 5/4 B.
  EXPECT_EQ(by_size[5], (std::set<double>{1.2}));
  // 6: a ring reaches 6/5 B; 9 links / 5 = 9/5 B is 1.5 as much, and 3/2 B (where a pair hangs on
  // two links only) 1.25.
  EXPECT_GE(*by_size[6].begin(), 1.25 - 1e-6);
  EXPECT_LE(*by_size[6].rbegin(), 1.5 + 1e-6);
  EXPECT_DOUBLE_EQ(*by_size[6].rbegin(), 1.5);
  // 7: 12 links / 6 = 2 B against 7/6 B. 8: equal.
  EXPECT_EQ(by_size[7], (std::set<double>{1.714286}));
  EXPECT_EQ(by_size[8], (std::set<double>{1}));
}

TEST(RingSearch, GainOfTheOptimumOverRingsOnV100) {
  std::map<std::size_t, double> maximum;
  for (const auto& [gpus, gain] : gain_over_rings("dgx1-v100", 25)) {
    maximum[gpus.size()] = std::max(maximum[gpus.size()], gain);
    EXPECT_GE(gain, 1 - 1e-9);
  }
  EXPECT_NEAR(maximum[5], 2.0, 0.005);
  EXPECT_NEAR(maximum[6], 25.0 / 12, 0.005);  // 2.08
  EXPECT_DOUBLE_EQ(maximum[8], 1);
}

TEST(RingSearch, BothWaysThroughADoubleLinkThatEndsThere) {
  // GPU 4 hangs on the quad by the double link to 0 only: in by one of its links, back by the
  // other.
  const RingSet v100 = Machine("dgx1-v100").rings({0, 1, 2, 3, 4});
  EXPECT_EQ(v100.kind, RingKind::relayed);
  EXPECT_TRUE(v100.both_ways);
  ASSERT_EQ(v100.rings.size(), 1U);
  EXPECT_EQ(std::count(v100.rings[0].relays.begin(), v100.rings[0].relays.end(), 0), 1);
  // The single link of a P100 can be passed each way once: one ring, one way.
  const RingSet p100 = Machine("dgx1-p100").rings({0, 1, 2, 3, 4});
  EXPECT_EQ(p100.kind, RingKind::relayed);
  EXPECT_FALSE(p100.both_ways);
  EXPECT_EQ(p100.rings.size(), 1U);
}

TEST(RingSearch, WithoutRelaysRingsFallBackToOtherLinks) {
  const std::vector<int> gpus = {0, 1, 2, 3, 4};
  const RingSet set = Machine("dgx1-p100", LinkScope::all).rings(gpus, {false});
  EXPECT_EQ(set.kind, RingKind::routed);
  EXPECT_EQ(set.rings.size(), 1U);
  EXPECT_FALSE(set.both_ways);
  // On the fabric alone there is nothing to fall back to: 4 has a link to 0 only.
  const RingSet none = Machine("dgx1-p100").rings(gpus, {false});
  EXPECT_TRUE(none.rings.empty());
  EXPECT_EQ(none.why_not, "no route joins gpu1 and gpu4");
}

TEST(RingSearch, TwoRanksHaveARingPerLink) {
  EXPECT_EQ(Machine("dgx1-v100").rings({0, 3}).rings.size(), 2U);
  EXPECT_EQ(Machine("dgx1-v100").rings({0, 1}).rings.size(), 1U);
  EXPECT_EQ(Machine("dgx1-v100", LinkScope::all).rings({0, 5}).kind, RingKind::routed);
}

TEST(RingSearch, CompleteGraphsSplitIntoRings) {
  // K_n has n (n - 1) / 2 edges: floor((n - 1) / 2) rings of n.
  for (const int n : {3, 4, 5, 6, 7, 8}) {
    const RingSet set = Machine(fmt::format("full:n={}", n)).rings({});
    EXPECT_EQ(set.rings.size(), static_cast<std::size_t>((n - 1) / 2)) << n;
  }
  // Above eight ranks the search is a heuristic; here it must find most of them.
  for (const int n : {9, 12, 16, 24, 32}) {
    const Machine machine(fmt::format("full:n={}", n));
    const RingSet set = machine.rings({});
    std::vector<int> all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    expect_disjoint(machine, all, set);
    EXPECT_GE(set.rings.size(), static_cast<std::size_t>((n - 1) / 2 * 2 / 3)) << n;
  }
}

TEST(RingSearch, LargeMachinesKeepTheOrderOfRanks) {
  const RingSet ring = Machine("ring:n=100").rings({});
  EXPECT_EQ(ring.kind, RingKind::direct);
  ASSERT_EQ(ring.rings.size(), 1U);
  EXPECT_EQ(ring.rings[0].order[99], 99);
  EXPECT_TRUE(ring.both_ways);
}

TEST(RingSearch, SwitchesCarryTheRingOfRankOrder) {
  const RingSet set = Machine("dgx-a100").rings({3, 1, 0, 2});
  EXPECT_EQ(set.kind, RingKind::switched);
  ASSERT_EQ(set.rings.size(), 1U);
  EXPECT_EQ(set.rings[0].order, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_FALSE(set.both_ways);
}

TEST(RingSearch, PcieRingsCrossSharedLinksOnce) {
  // Ranks given so that rank order crosses between the two halves of the machine at every hop. A
  // ring that crosses once each way loads the link between them no more than any other.
  const RingSet set = Machine("p2.16xlarge", LinkScope::all).rings({0, 8, 1, 9, 2, 10, 3, 11});
  EXPECT_EQ(set.kind, RingKind::routed);
  ASSERT_EQ(set.rings.size(), 1U);
  int crossings = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    // Even ranks are GPUs 0 to 3, odd ones 8 to 11.
    crossings += set.rings[0].order[i] % 2 != set.rings[0].order[(i + 1) % 8] % 2;
  }
  EXPECT_EQ(crossings, 2);
}

/// How often rings begin or end, on the first machine, at a GPU of each of its NICs (two GPUs or
/// one to a NIC).
std::map<int, int> ends_by_nic(const RingSet& set, std::size_t gpus, int gpus_per_nic) {
  std::map<int, int> ends;
  for (const Ring& ring : set.rings) {
    ++ends[ring.order[0] / gpus_per_nic];
    ++ends[ring.order[gpus - 1] / gpus_per_nic];
  }
  return ends;
}

TEST(RingSearch, ClustersAreCrossedHostByHost) {
  for (const auto& [name, gpus_per_nic, rings, both_ways] :
       {std::tuple("dgx1-v100:nodes=2", 2, 4, true), {"dgx-a100:nodes=3", 1, 8, false}}) {
    SCOPED_TRACE(name);
    const Machine machine(name, LinkScope::all);
    const RingSet set = machine.rings({});
    EXPECT_EQ(set.kind, RingKind::network);
    EXPECT_EQ(set.both_ways, both_ways);
    EXPECT_EQ(set.rings.size(), static_cast<std::size_t>(rings));
    const Placement placement = place_ranks(machine.router, {});
    for (const Ring& ring : set.rings) {
      ASSERT_EQ(ring.order.size(), placement.ranks.size());
      for (std::size_t i = 0; i < ring.order.size(); ++i) {
        const auto rank = static_cast<std::size_t>(ring.order[i]);
        EXPECT_EQ(placement.machine_of_rank[rank], static_cast<int>(i / 8));
      }
    }
    // As many rings as NICs, each with two ends: two at every NIC.
    std::map<int, int> even;
    for (int nic = 0; nic < 8 / gpus_per_nic; ++nic) even[nic] = 2;
    EXPECT_EQ(ends_by_nic(set, 8, gpus_per_nic), even);
  }
}

TEST(RingSearch, UnequalHostsShareTheirRings) {
  // Three GPUs of one DGX-1 and one of the other: the single one takes part in every ring.
  const Machine machine("dgx1-v100:nodes=2", LinkScope::all);
  const RingSet set = machine.rings({0, 1, 2, 9});
  EXPECT_EQ(set.kind, RingKind::network);
  for (const Ring& ring : set.rings) EXPECT_EQ(ring.order.back(), 3);
  EXPECT_TRUE(set.both_ways);
}

}  // namespace
}  // namespace espalier
