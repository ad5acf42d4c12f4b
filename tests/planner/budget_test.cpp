// SPDX-License-Identifier: Apache-2.0
// Searches stop after so much counted work, with the best plan and the tightest proof so far, and
// say so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "planner/bounds.h"
#include "planner/pack_allreduce.h"
#include "planner/pack_paths.h"
#include "planner/packing/column_generation.h"
#include "planner/packing/demand_packing.h"
#include "planner/packing/spanning_trees.h"
#include "planner/trees/branchings.h"
#include "planner/trees/edge_splitting.h"
#include "topologies/load.h"

namespace espalier {
namespace {

struct MachineForBudgets {
  explicit MachineForBudgets(const std::string& machine)
      : topology(load_topology(machine)),
        router(topology, topology.profile("ideal"), LinkScope::fabric),
        placement(place_ranks(router, {})) {}

  PackingProblem problem(EdgeUse use) const { return packing_problem(router, placement, use); }

  Topology topology;
  Router router;
  Placement placement;
};

/// No resource is loaded beyond its capacity, exactly.
void expect_no_overload(const PackingProblem& problem, const TreePacking& packing) {
  std::vector<Rational> used(problem.resources.size());
  for (std::size_t i = 0; i < packing.trees.size(); ++i) {
    EXPECT_EQ(packing.trees[i].size(), static_cast<std::size_t>(problem.ranks) - 1);
    const Loads loads = loads_of(problem, packing.trees[i]);
    for (std::size_t r = 0; r < loads.size(); ++r) used[r] += packing.weights[i] * loads[r];
  }
  for (std::size_t r = 0; r < used.size(); ++r) EXPECT_LE(used[r], problem.resources[r].capacity);
}

TEST(Budget, TreesOfASearchThatStopsEarlyAreStillAPacking) {
  const MachineForBudgets machine("dgx1-v100");
  const PackingProblem problem = machine.problem(EdgeUse::both_ways);
  const TreePacking best = pack_spanning_trees(problem);
  EXPECT_TRUE(best.is_complete);
  EXPECT_EQ(best.rate, best.limit);
  Rational before = 0;
  for (const std::int64_t work : {1, 5'000}) {
    SCOPED_TRACE(work);
    const TreePacking packing = pack_spanning_trees(problem, work);
    EXPECT_FALSE(packing.is_complete);
    expect_no_overload(problem, packing);
    EXPECT_GT(packing.rate, 0);
    EXPECT_LE(packing.rate, best.rate);
    EXPECT_GE(packing.limit, best.limit) << "a weaker proof, but a proof";
    EXPECT_GE(packing.rate, before) << "more work does no harm";
    before = packing.rate;
  }
}

TEST(Budget, TheSameWorkGivesTheSamePlan) {
  const MachineForBudgets machine("torus:x=3,y=3,z=2,gbps=10");
  const PackingProblem problem = machine.problem(EdgeUse::both_ways);
  const TreePacking once = pack_spanning_trees(problem, 200'000);
  const TreePacking again = pack_spanning_trees(problem, 200'000);
  EXPECT_EQ(once.weights, again.weights);
  EXPECT_EQ(once.prices, again.prices);
}

TEST(Budget, PathsOfASearchThatStopsEarlyServeEveryDemand) {
  const MachineForBudgets machine("ring:n=6,gbps=25");
  const PackingProblem problem = machine.problem(EdgeUse::one_way);
  const std::vector<Demand> demands = demands_of(Collective::alltoall, 0, problem.ranks);
  const DemandPacking best = pack_demands(problem, demands);
  EXPECT_TRUE(best.is_complete);
  EXPECT_EQ(best.rate, best.limit);
  for (const std::int64_t work : {1, 3'000}) {
    SCOPED_TRACE(work);
    const DemandPacking packing = pack_demands(problem, demands, work);
    EXPECT_FALSE(packing.is_complete);
    EXPECT_GT(packing.rate, 0);
    EXPECT_LE(packing.rate, best.rate);
    EXPECT_GE(packing.limit, best.limit);
    std::vector<Rational> served(demands.size());
    for (const Carrier& carrier : packing.carriers) {
      served[static_cast<std::size_t>(carrier.demand)] += carrier.share;
    }
    EXPECT_THAT(served, ::testing::Each(Rational(1)));
  }
}

// Six ranks joined all to all, a tree from each: five trees enter every rank over five arcs.
TEST(Budget, OneWayTreesAreCompletedWithoutAskingForRoom) {
  constexpr int kRanks = 6;
  std::vector<std::int64_t> room(kRanks * kRanks, 1);
  const Supply supply(kRanks, 1);
  for (const std::int64_t work : {std::int64_t{1}, std::int64_t{300}, kMaxBranchingWork}) {
    SCOPED_TRACE(work);
    const std::vector<Branching> trees = pack_branchings(kRanks, room, supply, work);
    std::vector<std::int64_t> used(room.size(), 0);
    ASSERT_EQ(trees.size(), 6U);
    for (const Branching& tree : trees) {
      std::set<int> reached{tree.root};
      for (const auto& [from, to] : tree.edges) {
        EXPECT_TRUE(reached.contains(from) && reached.insert(to).second);
        ++used[static_cast<std::size_t>(from) * kRanks + static_cast<std::size_t>(to)];
      }
      EXPECT_EQ(reached.size(), 6U);
    }
    if (work == kMaxBranchingWork) {
      EXPECT_EQ(*std::ranges::max_element(used), 1);
    }
  }
}

TEST(Budget, SwitchesAreSplitOffWithinIt) {
  const MachineForBudgets machine("dgx2");
  const CapacityGraph graph =
      capacity_graph(machine.router, machine.placement, MediaUse::evenly, 0, {});
  const Supply supply(16, 1);
  const TreeGrid grid = widest_grid(graph, supply, best_rate(graph, supply), 1);
  WorkBudget enough(kMaxPackingWork);
  EXPECT_TRUE(split_off_switches(graph, grid.arc_trees, supply, machine.topology, enough));
  WorkBudget little(100);
  EXPECT_THROW(split_off_switches(graph, grid.arc_trees, supply, machine.topology, little),
               OutOfBudget);
}

TEST(Budget, TheNoteSaysHowMuchMayBeMissing) {
  EXPECT_EQ(note_on_ended_search(100, 104),
            "the search stopped when its budget of steps was spent: a plan up to 4 % faster may "
            "exist");
  EXPECT_EQ(note_on_ended_search(100, 100), "") << "the plan is the best all the same";
}

// A star from every rank uses each of n (n - 1) / 2 links twice, at half its width each time: n / 2
// links' worth, which is what n parts of one GPU allow. The linear program has 1128 rows of equally
// good columns and did not end in minutes.
TEST(Budget, AFullMeshNeedsNoSearch) {
  const MachineForBudgets machine("full:n=48,gbps=25");
  const PackingProblem problem = machine.problem(EdgeUse::both_ways);
  const TreePacking packing = pack_spanning_trees(problem, 50'000'000);
  EXPECT_TRUE(packing.is_complete);
  EXPECT_EQ(packing.rate, packing.limit);
  expect_no_overload(problem, packing);
  const Forest forest = pack_allreduce(machine.router, machine.placement);
  EXPECT_EQ(forest.exact_algbw, "600");
  EXPECT_EQ(forest.note, "");
  EXPECT_THAT(check_forest(forest, machine.router, machine.placement), ::testing::IsEmpty());
  EXPECT_EQ(bandwidth_bound(Collective::allreduce, 0, machine.router, machine.placement).exact,
            "600");
}

// Every rank to the next: one link directly and 30 ways over a third rank, which take two links:
// 1 + 30 / 2 links' worth of 25 GB/s.
TEST(Budget, FewPairsOfAFullMeshShareAllItsLinks) {
  const MachineForBudgets machine("full:n=32,gbps=25");
  const Forest forest = pack_paths(Collective::sendrecv, 0, machine.router, machine.placement);
  EXPECT_GE(forest.algbw_gbps, 0.998 * 400);
  EXPECT_EQ(forest.note, "");
  EXPECT_THAT(check_forest(forest, machine.router, machine.placement), ::testing::IsEmpty());
}

}  // namespace
}  // namespace espalier
