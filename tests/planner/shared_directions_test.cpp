// SPDX-License-Identifier: Apache-2.0
// Broadcast, reduce, allgather and reducescatter where both directions of links share bandwidth,
// against the linear program over all spanning trees, written out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "planner/bounds.h"
#include "planner/pack_arborescences.h"
#include "planner/packing/cheapest_arborescence.h"
#include "planner/packing/packing_master.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

/// parent[rank]; the root's is -1.
using Parents = std::vector<int>;

bool leads_to_root(const Parents& parents, int root) {
  const int n = static_cast<int>(parents.size());
  for (int rank = 0; rank < n; ++rank) {
    int at = rank;
    for (int step = 0; step < n && at != root; ++step) at = parents[at];
    if (at != root) return false;
  }
  return true;
}

/// All ways to give every rank but the root a parent that make a tree.
std::vector<Parents> all_trees(int n, int root) {
  std::vector<Parents> trees;
  Parents parents(n, 0);
  parents[root] = -1;
  while (true) {
    if (leads_to_root(parents, root)) trees.push_back(parents);
    int rank = 0;
    while (rank < n && (rank == root || ++parents[rank] == n)) {
      if (rank != root) parents[rank] = 0;
      ++rank;
    }
    if (rank == n) return trees;
  }
}

/// A full machine with half of its links half duplex.
Topology random_machine(std::mt19937& random, int ranks) {
  Topology topology = load_topology("full:n=" + std::to_string(ranks));
  for (Link& link : topology.links) {
    link.gbps = static_cast<double>(1 + random() % 9);
    link.duplex = random() % 2 == 0 ? Duplex::half : Duplex::full;
  }
  return topology;
}

/// The best rate per root, by the program over all trees of all roots.
double best_rate(const Topology& topology, int ranks, const std::vector<int>& roots) {
  std::vector<std::int64_t> limits(roots.size(), 0);
  std::map<std::pair<int, int>, int> row;  // by tail and head
  for (const Link& link : topology.links) {
    row[{link.a, link.b}] = static_cast<int>(limits.size());
    limits.push_back(std::llround(link.gbps));
    if (link.duplex == Duplex::full) limits.push_back(std::llround(link.gbps));
    row[{link.b, link.a}] = static_cast<int>(limits.size()) - 1;
  }
  PackingMaster master(limits);
  std::map<int, std::int64_t> rate;
  for (std::size_t k = 0; k < roots.size(); ++k) rate[static_cast<int>(k)] = 1;
  master.add(rate);
  for (std::size_t k = 0; k < roots.size(); ++k) {
    for (const Parents& parents : all_trees(ranks, roots[k])) {
      std::map<int, std::int64_t> loads{{static_cast<int>(k), -1}};
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank != roots[k]) ++loads[row.at({parents[rank], rank})];
      }
      master.add(loads);
      master.set_value(master.columns() - 1, 0);
    }
  }
  EXPECT_TRUE(master.solve());
  return master.weights().front();
}

TEST(SharedDirections, RandomMachinesAttainTheProgramOverAllTrees) {
  constexpr unsigned kSeed = 20261121;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  for (int trial = 0; trial < 40; ++trial) {
    const int ranks = 3 + trial % 2;
    const Topology topology = random_machine(random, ranks);
    const Router router(topology, topology.profile("ideal"), LinkScope::fabric);
    const Placement placement = place_ranks(router, {});
    std::vector<int> all;
    for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
    const double rooted = best_rate(topology, ranks, {1});
    const double every = best_rate(topology, ranks, all) * ranks;
    for (const auto& [collective, optimum] :
         {std::pair{Collective::broadcast, rooted}, std::pair{Collective::reduce, rooted},
          std::pair{Collective::allgather, every}, std::pair{Collective::reducescatter, every}}) {
      SCOPED_TRACE("trial " + std::to_string(trial) + " " + std::string(to_string(collective)));
      const Forest forest = pack_arborescences(collective, 1, router, placement);
      EXPECT_THAT(check_forest(forest, router, placement), testing::IsEmpty());
      EXPECT_NEAR(forest.algbw_gbps, optimum, 0.003 * optimum);  // whole weights
      EXPECT_NEAR(bandwidth_bound(collective, 1, router, placement).algbw_gbps, optimum,
                  1e-6 * optimum);
    }
  }
}

TEST(SharedDirections, SummitByArithmetic) {
  // Three GPUs below each of two CPUs, which a half-duplex link of 64 GB/s joins. The adapter, on
  // both, brings 25 GB/s back from the network whichever way. Each of six blocks has to cross once:
  // six blocks at 89 / 6. Without that detour, at 64 / 6.
  const Topology topology = load_topology("summit");
  for (const auto& [links, rate] : {std::pair{LinkScope::detours, "89"}, {LinkScope::all, "64"}}) {
    const Router router(topology, topology.profile("ideal"), links);
    const Placement placement = place_ranks(router, {});
    for (const Collective collective : {Collective::allgather, Collective::reducescatter}) {
      const Forest forest = pack_arborescences(collective, 0, router, placement);
      EXPECT_EQ(forest.exact_algbw, rate);
      EXPECT_EQ(bandwidth_bound(collective, 0, router, placement).exact, rate);
    }
  }
}

TEST(CheapestArborescence, RandomGraphsAgreeWithAllTrees) {
  constexpr unsigned kSeed = 20261122;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  for (int trial = 0; trial < 200; ++trial) {
    const int n = 2 + trial % 4;
    const int root = static_cast<int>(random() % n);
    // Few different prices, so that circles of cheapest arcs are common.
    ArcPrices<std::int64_t> prices(n, std::vector<std::optional<std::int64_t>>(n));
    for (int from = 0; from < n; ++from) {
      for (int to = 0; to < n; ++to) {
        if (from != to) prices[from][to] = random() % 6;
      }
    }
    std::int64_t minimum = -1;
    for (const Parents& parents : all_trees(n, root)) {
      std::int64_t price = 0;
      for (int rank = 0; rank < n; ++rank) {
        if (rank != root) price += *prices[parents[rank]][rank];
      }
      minimum = minimum < 0 ? price : std::min(minimum, price);
    }
    Parents parents(n, -1);
    std::int64_t price = 0;
    for (const auto& [from, to] : cheapest_arborescence(prices, root)) {
      EXPECT_EQ(parents[to], -1) << trial;
      parents[to] = from;
      price += *prices[from][to];
    }
    EXPECT_TRUE(parents[root] == -1 && leads_to_root(parents, root)) << trial;
    EXPECT_EQ(price, minimum) << trial;
  }
}

}  // namespace
}  // namespace espalier
