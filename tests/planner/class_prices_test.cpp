// SPDX-License-Identifier: Apache-2.0
// Bounds by one price for every class of alike links are those by a price for each link.
#include "planner/bounds/class_prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/bounds.h"
#include "planner/graph/colour_refinement.h"
#include "planner/packing/nearest_sites.h"
#include "planner/packing/spanning_trees.h"
#include "topologies/load.h"

namespace espalier {
namespace {

struct MachineOfClasses {
  explicit MachineOfClasses(Topology given, LinkScope scope = LinkScope::all)
      : topology(std::move(given)),
        router(topology, topology.profile("ideal"), scope),
        placement(place_ranks(router, {})),
        problem(packing_problem(router, placement, EdgeUse::both_ways)) {}
  explicit MachineOfClasses(const std::string& name) : MachineOfClasses(load_topology(name)) {}

  Topology topology;
  Router router;
  Placement placement;
  PackingProblem problem;
};

TEST(ColourRefinement, TellsVerticesApartByWhatIsAroundThem) {
  // 0 - 1 - 2 - 3 - 4: ends, those beside them, the middle.
  const std::vector<LabelledEdge> line{{0, 1, 0}, {1, 2, 0}, {3, 2, 0}, {4, 3, 0}};
  EXPECT_EQ(refine_colours({7, 7, 7, 7, 7}, line), (std::vector<int>{0, 1, 2, 1, 0}));
  EXPECT_EQ(refine_colours({7, 7, 7, 7, 8}, line), (std::vector<int>{0, 1, 2, 3, 4}));
  // In one direction around, the edge from 2 leads the wrong way.
  const std::vector<LabelledEdge> around{{0, 1, 0}, {1, 2, 0}, {0, 2, 0}};
  EXPECT_EQ(refine_colours({0, 0, 0}, around), (std::vector<int>{0, 1, 2}));
  const std::vector<LabelledEdge> ring{{0, 1, 0}, {1, 2, 0}, {2, 0, 0}};
  EXPECT_EQ(refine_colours({0, 0, 0}, ring), (std::vector<int>{0, 0, 0}));
  const std::vector<LabelledEdge> labelled{{0, 1, 0}, {1, 2, 0}, {2, 0, 1}};
  EXPECT_EQ(refine_colours({0, 0, 0}, labelled), (std::vector<int>{0, 1, 2}));
}

/// As it is defined: all vertices look around, until nobody sees anything new.
std::vector<int> refined_in_rounds(std::vector<int> colours,
                                   const std::vector<LabelledEdge>& edges) {
  using Sight = std::pair<int, std::multiset<std::pair<int, int>>>;
  std::size_t before = 0;
  for (std::map<Sight, int> known;; before = known.size(), known.clear()) {
    std::vector<Sight> sights;
    for (const int colour : colours) sights.push_back({colour, {}});
    for (const LabelledEdge& edge : edges) {
      const auto a = static_cast<std::size_t>(edge.a), b = static_cast<std::size_t>(edge.b);
      sights[a].second.emplace(2 * edge.label, colours[b]);
      sights[b].second.emplace(2 * edge.label + 1, colours[a]);
    }
    for (std::size_t v = 0; v < colours.size(); ++v) {
      colours[v] = known.emplace(sights[v], static_cast<int>(known.size())).first->second;
    }
    if (known.size() == before) return colours;
  }
}

TEST(ColourRefinement, FindsWhatRoundsFind) {
  int stay_alike = 0;  // graphs with classes of several vertices
  for (unsigned seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    // Copies of a graph, whose edges lead to the same copy or so many further on; and few others,
    // so that some of the vertices stay alike.
    const int copies = 1 + below(8);
    const int size = 1 + below(8);
    const int n = copies * size;
    std::vector<int> colours;
    for (int v = 0; v < n; ++v) colours.push_back(v / copies % 3 == 0 ? 5 : 3);
    std::vector<LabelledEdge> edges;
    for (int edge = 2 * size; edge > 0; --edge) {
      const int a = below(size), b = below(size), label = below(3), further = below(copies);
      for (int i = 0; i < copies; ++i) {
        edges.push_back({a * copies + i, b * copies + (i + further) % copies, label});
      }
    }
    for (int extra = below(3); extra > 0; --extra) {
      edges.push_back({below(n), below(n), below(3)});
    }
    const std::vector<int> refined = refined_in_rounds(colours, edges);
    stay_alike += std::ranges::max(refined) + 1 < n ? 1 : 0;
    EXPECT_EQ(refine_colours(colours, edges), refined);
  }
  EXPECT_GT(stay_alike, 100);
}

class ClassPricesOf : public testing::TestWithParam<const char*> {};

TEST_P(ClassPricesOf, ProveTheOptimumOfAllPrices) {
  const MachineOfClasses machine(GetParam());
  const PackingProblem& problem = machine.problem;
  const ResourceClasses classes = resource_classes(problem);
  const auto priced = price_classes(problem, classes);
  ASSERT_TRUE(priced);
  EXPECT_TRUE(priced->is_complete);
  const TreePacking packing = pack_spanning_trees(problem);
  const double limit = priced->limit.convert_to<double>();
  EXPECT_NEAR(limit / packing.limit.convert_to<double>(), 1, 1e-9);
  // The certificate holds on the whole machine, by another way to find the cheapest tree.
  const std::vector<Integer> whole = whole_prices(priced->prices);
  Rational paid = 0;
  for (std::size_t r = 0; r < whole.size(); ++r) paid += whole[r] * problem.resources[r].capacity;
  EXPECT_EQ(priced->limit, paid / RankDistances<Integer>(problem, whole).tree(0).price);
  for (std::size_t r = 0; r < whole.size(); ++r) {
    const auto same = std::ranges::find(classes.of_resource, classes.of_resource[r]);
    EXPECT_EQ(whole[r], whole[static_cast<std::size_t>(same - classes.of_resource.begin())]);
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, ClassPricesOf,
                         testing::Values("ring:n=9", "torus:x=4,y=4", "torus:x=3,y=3,z=3",
                                         "full:n=6", "switch:n=12", "dgx-h100", "dgx-a100:nodes=2",
                                         "dgx-h100:nodes=3", "p3.16xlarge:nodes=3", "mi300x",
                                         "gb200-nvl72:nodes=2", "summit:nodes=3", "mist:nodes=4",
                                         "kesch:nodes=2"));

TEST_P(ClassPricesOf, FewTreesNeverCarryMoreThanTheyProve) {
  const MachineOfClasses machine(GetParam());
  const Rational best = pack_spanning_trees(machine.problem).limit;
  // More than that is carried by no trees.
  EXPECT_FALSE(carries_at_once(machine.problem, best * Rational(1'000'000'001, 1'000'000'000)));
  EXPECT_TRUE(carries_at_once(machine.problem, best / machine.problem.ranks));
}

/// Of many unlike links, trees that carry almost as much as the least cut do not end the search.
TEST(ClassPrices, OfSlightlyTighterPartitionsAreFound) {
  Topology topology = load_topology("full:n=26");
  double gbps = 99;
  for (Link& link : topology.links) link.gbps = gbps += 1;
  const auto hang_on = [&](NodeId near) {
    Node far = topology.node(near);
    far.name += " far";
    topology.nodes.push_back(far);
    const auto id = static_cast<NodeId>(topology.nodes.size() - 1);
    Link link = topology.links.front();
    link.a = near;
    link.b = id;
    link.gbps = 10;
    topology.links.push_back(link);
    return id;
  };
  const NodeId one = hang_on(0), other = hang_on(1);
  Link slow = topology.links.back();
  slow.a = one;
  slow.b = other;
  slow.gbps = 0.008;
  topology.links.push_back(slow);
  const MachineOfClasses machine(topology);
  const Bound bound =
      bandwidth_bound(Collective::allreduce, 0, machine.router, machine.placement, {});
  // Three parts: (10 + 10 + 0.008) / 2, less than the 10.008 that leave one of the two.
  EXPECT_EQ(bound.exact, "2501/250");
  EXPECT_EQ(bound.kind, "partition");
}

TEST(ClassPrices, AreReachedByFewTreesWhereRanksAreAlike) {
  for (const char* name : {"mist:nodes=16", "cedar:nodes=8", "p3.16xlarge:nodes=3"}) {
    const MachineOfClasses machine(name);
    const auto priced = price_classes(machine.problem, resource_classes(machine.problem));
    ASSERT_TRUE(priced) << name;
    EXPECT_TRUE(carries_at_once(machine.problem, priced->limit)) << name;
    const Rational more = priced->limit * Rational(1'000'000'001, 1'000'000'000);
    EXPECT_FALSE(carries_at_once(machine.problem, more)) << name;
  }
}

TEST(ClassPrices, AreNotTriedWithoutSymmetry) {
  Topology topology = load_topology("full:n=6");
  double gbps = 20;
  for (Link& link : topology.links) link.gbps = ++gbps;
  const MachineOfClasses machine(topology);
  EXPECT_EQ(resource_classes(machine.problem).count, 15);
  EXPECT_FALSE(price_classes(machine.problem, resource_classes(machine.problem)));
}

TEST(ClassPrices, OfAMachineWithOneBrokenLinkAreThoseOfThatMachine) {
  const std::string name = "dgx-h100:nodes=16";
  const MachineOfClasses intact(name);
  Topology topology = load_topology(name);
  // All that n9 is joined to the others by, but a tenth.
  for (Link& link : topology.links) {
    if (topology.node(link.a).name.starts_with("n9.nic") && topology.node(link.b).host < 0) {
      link.gbps /= 10;
    }
  }
  const MachineOfClasses broken(topology);
  const ResourceClasses classes = resource_classes(broken.problem);
  EXPECT_GT(classes.count, resource_classes(intact.problem).count);
  const auto before = price_classes(intact.problem, resource_classes(intact.problem));
  const auto after = price_classes(broken.problem, classes);
  ASSERT_TRUE(before && after);
  // n9 alone: 8 NICs of 5 GB/s each way, two messages of every byte.
  const Rational limit = after->limit * broken.problem.upper_unit;
  EXPECT_LE(rounded_gbps(limit), 40.0);
  EXPECT_GT(rounded_gbps(before->limit * intact.problem.upper_unit), 200.0);
}

TEST(ClassPrices, StayAProofWhenTheSearchStopsEarly) {
  const MachineOfClasses machine("dgx-h100:nodes=3");
  const ResourceClasses classes = resource_classes(machine.problem);
  const auto best = price_classes(machine.problem, classes);
  const auto early = price_classes(machine.problem, classes, /*max_work=*/1);
  ASSERT_TRUE(best && early);
  EXPECT_FALSE(early->is_complete);
  EXPECT_GE(early->limit, best->limit);
}

TEST(ClassPrices, BoundMachinesOfManyRanks) {
  // Between hosts the NICs' PCIe links are a little narrower than the network's: 47.88 of 48 GB/s,
  // 8 of them in each of 16 hosts. The partition into hosts counts the network's.
  const Topology topology = load_topology("dgx-h100:nodes=16");
  const Router router(topology, topology.profile("kernel"), LinkScope::all);
  const Bound bound = bandwidth_bound(Collective::allreduce, 0, router, place_ranks(router, {}),
                                      {.in_switches = false});
  EXPECT_EQ(bound.kind, "lp");
  EXPECT_DOUBLE_EQ(bound.algbw_gbps, 16 * 8 * 47.88 / (2 * 15));
  EXPECT_THAT(bound.certificate, testing::HasSubstr("others at this price"));
}

TEST(NearestSites, FindTheCheapestTreeOfAllWays) {
  std::mt19937 random(7);
  for (const char* name : {"dgx-a100:nodes=2", "dgx1-v100", "torus:x=4,y=3", "p2.16xlarge",
                           "kesch:nodes=2", "mi250", "mist:nodes=3", "switch:n=9"}) {
    SCOPED_TRACE(name);
    const MachineOfClasses machine(name);
    for (int round = 0; round < 20; ++round) {
      std::vector<Integer> prices;
      for (std::size_t r = 0; r < machine.problem.resources.size(); ++r) {
        prices.emplace_back(random() % 8);
      }
      const auto cheapest = NearestSites<Integer>(machine.problem, prices).tree();
      EXPECT_EQ(cheapest.price, RankDistances<Integer>(machine.problem, prices).tree(0).price);
      const Loads loads = loads_of(machine.problem, cheapest.tree);
      Integer paid = 0;
      for (std::size_t r = 0; r < prices.size(); ++r) paid += prices[r] * loads[r];
      EXPECT_EQ(cheapest.price, paid);
    }
  }
}

}  // namespace
}  // namespace espalier
