// SPDX-License-Identifier: Apache-2.0
// Idle GPUs that relay: plans and bounds on every subset of a DGX-1, and on small machines against
// optima found by listing every tree.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "planner/bounds.h"
#include "planner/pack_allreduce.h"
#include "planner/pack_arborescences.h"
#include "planner/packing/packing_master.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

constexpr double kRounding = 1e-9;

Forest pack(Collective collective, int root, const Router& router, const Placement& placement) {
  return collective == Collective::allreduce
             ? pack_allreduce(router, placement)
             : pack_arborescences(collective, root, router, placement);
}

std::vector<int> numbers(unsigned mask) {
  std::vector<int> all;
  for (int gpu = 0; gpu < 8; ++gpu) {
    if (mask >> gpu & 1U) all.push_back(gpu);
  }
  return all;
}

constexpr Collective kPlanned[] = {Collective::broadcast, Collective::reduce, Collective::allgather,
                                   Collective::reducescatter, Collective::allreduce};

struct Found {
  double planned_gbps = 0;
  double bound_gbps = 0;
};

/// Checks a plan; of ranks that nothing joins, both are 0.
Found plan(Collective collective, const Router& router, const Placement& placement) {
  Found found;
  found.bound_gbps = bandwidth_bound(collective, 0, router, placement).algbw_gbps;
  if (unreachable_pair(router, placement)) return found;
  const Forest forest = pack(collective, 0, router, placement);
  EXPECT_THAT(check_forest(forest, router, placement), testing::IsEmpty());
  found.planned_gbps = forest.algbw_gbps;
  EXPECT_LE(found.planned_gbps, found.bound_gbps * (1 + kRounding));
  return found;
}

class EverySubset : public testing::TestWithParam<const char*> {};

TEST_P(EverySubset, ReachesTheBoundWithRelaysAndIsNoWorse) {
  const Topology topology = load_topology(GetParam());
  const Router router(topology, topology.profile("ideal"), LinkScope::fabric);
  int joined = 0;
  int subsets = 0;
  for (unsigned mask = 1; mask < 256; ++mask) {
    const std::vector<int> gpus = numbers(mask);
    if (gpus.size() < 2 || gpus.size() == 8) continue;
    ++subsets;
    const Placement alone = place_ranks(router, gpus);
    const Placement relayed = place_ranks(router, gpus, numbers(~mask));
    for (const Collective collective : kPlanned) {
      SCOPED_TRACE(fmt::format("{} on {:#x}", to_string(collective), mask));
      const Found without = plan(collective, router, alone);
      const Found with = plan(collective, router, relayed);
      EXPECT_GE(with.planned_gbps, without.planned_gbps * (1 - kRounding));
      EXPECT_GE(with.bound_gbps, without.bound_gbps * (1 - kRounding));
      ASSERT_GT(with.planned_gbps, 0);
      joined += without.planned_gbps == 0;
      EXPECT_NEAR(with.planned_gbps, with.bound_gbps, kRounding * with.bound_gbps);
    }
  }
  EXPECT_EQ(subsets, 246);
  EXPECT_GT(joined, 0) << "some subsets are joined by relays alone";
}

INSTANTIATE_TEST_SUITE_P(Machines, EverySubset, testing::Values("dgx1-p100", "dgx1-v100"),
                         [](const auto& param) { return std::string(param.param).substr(5); });

/// A machine of direct links and nothing else.
struct Graph {
  struct Edge {
    int a, b;
    double gbps;
  };

  Graph(int gpus, std::vector<Edge> links, std::vector<int> ranks, std::vector<int> relays)
      : edges(std::move(links)), topology(machine(gpus, edges)), router(make_router(topology)) {
    placement = place_ranks(router, ranks, relays);
    sites = ranks;
    sites.insert(sites.end(), relays.begin(), relays.end());
  }

  static Topology machine(int gpus, const std::vector<Edge>& edges) {
    Topology made;
    made.name = "graph";
    for (int gpu = 0; gpu < gpus; ++gpu) {
      Node node;
      node.name = fmt::format("gpu{}", gpu);
      made.nodes.push_back(node);
    }
    for (const Edge& edge : edges) {
      Link link;
      link.a = edge.a;
      link.b = edge.b;
      link.kind = "wire";
      link.link_class = LinkClass::gpu_fabric;
      link.gbps = edge.gbps;
      made.links.push_back(link);
    }
    made.profiles["ideal"].name = "ideal";
    return made;
  }
  static Router make_router(const Topology& topology) {
    return Router(topology, topology.profile("ideal"), LinkScope::fabric);
  }

  int ranks() const { return static_cast<int>(placement.ranks.size()); }
  Forest pack(Collective collective, int root = 0) const {
    return espalier::pack(collective, root, router, placement);
  }
  Bound bound(Collective collective, int root = 0) const {
    return bandwidth_bound(collective, root, router, placement);
  }

  std::vector<Edge> edges;
  std::vector<int> sites;  ///< GPUs
  Topology topology;
  Router router;
  Placement placement;
};

/// Ranks 0, 1 and 2 around relay 3, 10 GB/s each: what goes up to the hub is combined there, and
/// what comes down is copied there.
TEST(Relay, AHubCombinesAndCopies) {
  const Graph star(4, {{0, 3, 10}, {1, 3, 10}, {2, 3, 10}}, {0, 1, 2}, {3});
  for (const Collective collective :
       {Collective::broadcast, Collective::reduce, Collective::allreduce}) {
    const Forest forest = star.pack(collective);
    EXPECT_EQ(forest.exact_algbw, "10") << to_string(collective);
    EXPECT_EQ(star.bound(collective).exact, "10") << to_string(collective);
    EXPECT_THAT(check_forest(forest, star.router, star.placement), testing::IsEmpty());
  }
  // Every rank gets two thirds of the message over its link: 3/2 x 10.
  EXPECT_EQ(star.pack(Collective::allgather).exact_algbw, "15");
  EXPECT_EQ(star.bound(Collective::allgather).exact, "15");
}

/// 0 - 2 - 1 with relay 2, and a direct link: both ways add up.
TEST(Relay, AddsToADirectLink) {
  const Graph triangle(3, {{0, 1, 25}, {0, 2, 10}, {1, 2, 10}}, {0, 1}, {2});
  for (const Collective collective : {Collective::broadcast, Collective::allreduce}) {
    EXPECT_EQ(triangle.pack(collective).exact_algbw, "35");
    EXPECT_EQ(triangle.bound(collective).exact, "35");
  }
  EXPECT_EQ(triangle.bound(Collective::broadcast).certificate,
            "the links out of {gpu0} carry 35 GB/s and 1 of the message must cross them: 35 / 1 = "
            "35 GB/s");
}

/// Ranks 0, 1 and relay 2 on a line 0 - 1 - 2: nothing to gain, and the relay is left alone.
TEST(Relay, IsLeftOutWhereItAddsNothing) {
  const Graph line(3, {{0, 1, 10}, {1, 2, 10}}, {0, 1}, {2});
  for (const Collective collective : kPlanned) {
    for (const PlannedTree& tree : line.pack(collective).trees) {
      EXPECT_FALSE(tree.uses_relays(2)) << to_string(collective);
    }
  }
}

TEST(Relay, WhatItDoesNotJoinStaysApart) {
  const Graph apart(4, {{0, 2, 10}, {1, 3, 10}}, {0, 1}, {2, 3});
  EXPECT_EQ(unreachable_pair(apart.router, apart.placement), std::pair(0, 1));
  EXPECT_THROW(apart.pack(Collective::allreduce), Error);
  EXPECT_THROW(apart.pack(Collective::broadcast), Error);
  EXPECT_EQ(apart.bound(Collective::broadcast).exact, "0");
}

/// Calls `visit(parent)` for every tree rooted at site 0 that joins all ranks and perhaps relays:
/// parent by site, -1 for the root and for sites that are left out.
template <typename Visit>
void every_tree(const Graph& graph, Visit visit) {
  const int n = static_cast<int>(graph.sites.size());
  std::vector<int> parent(graph.sites.size(), -1);
  const auto leads_to_root = [&](int site) {
    for (int steps = 0; steps <= n && site != 0; ++steps) {
      site = parent[static_cast<std::size_t>(site)];
      if (site < 0) return false;
    }
    return site == 0;
  };
  const auto choose = [&](const auto& self, int site) -> void {
    if (site == n) {
      for (int each = 1; each < n; ++each) {
        const bool inside = each < graph.ranks() || parent[static_cast<std::size_t>(each)] >= 0;
        if (inside && !leads_to_root(each)) return;
      }
      visit(parent);
      return;
    }
    for (int above = site < graph.ranks() ? 0 : -1; above < n; ++above) {
      if (above == site) continue;
      parent[static_cast<std::size_t>(site)] = above;
      self(self, site + 1);
    }
    parent[static_cast<std::size_t>(site)] = -1;
  };
  choose(choose, 1);
}

/// The best fractional packing of all those trees that links of whole GB/s allow. `both`: a tree
/// uses both directions of its links, as for allreduce; otherwise the one away from the root.
double best_packing(const Graph& graph, bool both) {
  const std::size_t n = graph.sites.size();
  std::map<std::pair<int, int>, std::size_t> direction;  // of sites
  std::vector<std::int64_t> capacities;
  for (const Graph::Edge& edge : graph.edges) {
    const auto site = [&](int gpu) {
      const auto at = std::find(graph.sites.begin(), graph.sites.end(), gpu);
      return static_cast<int>(at - graph.sites.begin());
    };
    for (const auto& ends :
         {std::pair(site(edge.a), site(edge.b)), std::pair(site(edge.b), site(edge.a))}) {
      direction[ends] = capacities.size();
      capacities.push_back(std::llround(edge.gbps));
    }
  }
  PackingMaster master(capacities);
  every_tree(graph, [&](const std::vector<int>& parent) {
    std::vector<std::int64_t> loads(capacities.size(), 0);
    for (std::size_t site = 1; site < n; ++site) {
      if (parent[site] < 0) continue;
      const auto down = direction.find({parent[site], static_cast<int>(site)});
      if (down == direction.end()) return;
      ++loads[down->second];
      if (both) ++loads[direction.at({static_cast<int>(site), parent[site]})];
    }
    master.add(loads);
  });
  if (master.columns() == 0 || !master.solve()) return 0;
  double rate = 0;
  for (const double weight : master.weights()) rate += weight;
  return rate;
}

/// Three ranks and two relays, some of the ten pairs joined by 1 to 4 GB/s.
Graph random_graph(std::mt19937_64& random) {
  const auto pick = [&](int minimum, int maximum) {
    return std::uniform_int_distribution<int>(minimum, maximum)(random);
  };
  std::vector<Graph::Edge> edges;
  for (int a = 0; a < 5; ++a) {
    for (int b = a + 1; b < 5; ++b) {
      if (pick(0, 9) < 6) edges.push_back({a, b, static_cast<double>(pick(1, 4))});
    }
  }
  return {5, std::move(edges), {0, 1, 2}, {3, 4}};
}

TEST(Relay, AllreducePacksAsWellAsEveryTreeTogether) {
  const unsigned seed = 20240611;
  std::mt19937_64 random(seed);
  int joined = 0, bound_reached = 0;
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(fmt::format("graph {} of seed {}", i, seed));
    const Graph graph = random_graph(random);
    const double optimum = best_packing(graph, true);
    if (optimum == 0) continue;
    ++joined;
    const Forest forest = graph.pack(Collective::allreduce);
    const double bound = graph.bound(Collective::allreduce).algbw_gbps;
    EXPECT_THAT(check_forest(forest, graph.router, graph.placement), testing::IsEmpty());
    EXPECT_NEAR(forest.algbw_gbps, optimum, 1e-6 * optimum);
    EXPECT_GE(bound, optimum * (1 - 1e-6));
    bound_reached += forest.algbw_gbps > bound * (1 - 1e-6);
  }
  EXPECT_GT(joined, 150);
  EXPECT_EQ(bound_reached, joined);
}

TEST(Relay, BroadcastPacksAsWellAsEveryTreeTogether) {
  const unsigned seed = 20240612;
  std::mt19937_64 random(seed);
  int joined = 0, best = 0;
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(fmt::format("graph {} of seed {}", i, seed));
    const Graph graph = random_graph(random);
    const double optimum = best_packing(graph, false);
    if (optimum == 0) continue;
    ++joined;
    const Forest forest = graph.pack(Collective::broadcast);
    const double bound = graph.bound(Collective::broadcast).algbw_gbps;
    EXPECT_THAT(check_forest(forest, graph.router, graph.placement), testing::IsEmpty());
    EXPECT_LE(forest.algbw_gbps, optimum * (1 + 1e-6));
    EXPECT_GE(bound, optimum * (1 - 1e-6));
    best += forest.algbw_gbps > optimum * (1 - 1e-6);
  }
  EXPECT_GT(joined, 150);
  EXPECT_EQ(best, joined);
}

/// min over all partitions of the sites into parts with a rank each of crossing / (parts - 1),
/// by numbering the part of each rank and then trying every part for every relay.
double weakest_partition(const Graph& graph) {
  const int n = static_cast<int>(graph.sites.size());
  std::vector<int> part(graph.sites.size(), 0);
  double best = std::numeric_limits<double>::infinity();
  const auto number = [&](const auto& self, int site, int parts) -> void {
    if (site == n) {
      if (parts < 2) return;
      double crossing = 0;
      for (const Graph::Edge& edge : graph.edges) {
        // Sites are GPUs 0, 1, ... in order here.
        if (part[static_cast<std::size_t>(edge.a)] != part[static_cast<std::size_t>(edge.b)]) {
          crossing += edge.gbps;
        }
      }
      best = std::min(best, crossing / (parts - 1));
      return;
    }
    const int maximum = site < graph.ranks() ? parts : parts - 1;  // a relay opens no part
    for (int at = 0; at <= maximum; ++at) {
      part[static_cast<std::size_t>(site)] = at;
      self(self, site + 1, std::max(parts, at + 1));
    }
  };
  number(number, 1, 1);
  return best;
}

TEST(Relay, AllreduceBoundIsTheWeakestPartitionThatLeavesNoRelayAlone) {
  const unsigned seed = 20240613;
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(fmt::format("graph {} of seed {}", i, seed));
    const Graph graph = random_graph(random);
    const double weakest = weakest_partition(graph);
    EXPECT_NEAR(graph.bound(Collective::allreduce).algbw_gbps, weakest, 1e-9 * (1 + weakest));
  }
}

/// Through PCIe switches and CPUs as well: never beyond the bound, never worse than without.
TEST(Relay, SwitchedMachinesKeepTheBound) {
  for (const char* spec : {"dgx1-v100", "p2.8xlarge", "dgx-a100", "mist:nodes=2"}) {
    const Topology topology = load_topology(spec);
    const Router router(topology, topology.profile("ideal"));
    const int count = static_cast<int>(topology.gpus().size());
    const std::vector<int> gpus = {0, 1, count - 1};
    const Placement alone = place_ranks(router, gpus);
    const Placement relayed = place_ranks(router, gpus, {2, count - 2});
    for (const Collective collective : kPlanned) {
      SCOPED_TRACE(fmt::format("{} on {}", to_string(collective), spec));
      const Found without = plan(collective, router, alone);
      const Found with = plan(collective, router, relayed);
      EXPECT_GT(with.planned_gbps, 0);
      // Where hundreds of trees would be needed plans stop at 98 % of the optimum.
      EXPECT_GE(with.planned_gbps, without.planned_gbps * 0.98);
      EXPECT_GE(with.bound_gbps, without.bound_gbps * (1 - kRounding));
    }
  }
}

}  // namespace
}  // namespace espalier
