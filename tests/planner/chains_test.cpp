// SPDX-License-Identifier: Apache-2.0
// Chains and stars: plans that take no search, for when there is no time for one and for machines
// of too many GPUs.
#include "planner/trees/chains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/time_limit.h"
#include "planner/bounds.h"
#include "planner/pack_allreduce.h"
#include "planner/pack_arborescences.h"
#include "topologies/load.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Machine {
  explicit Machine(const std::string& name, const std::vector<int>& gpus = {})
      : topology(load_topology(name)),
        router(topology, topology.profile("ideal"), LinkScope::all),
        placement(place_ranks(router, gpus)) {}

  PackingProblem problem() const { return packing_problem(router, placement, EdgeUse::both_ways); }
  Forest plan(Collective collective) const {
    return collective == Collective::allreduce
               ? pack_allreduce(router, placement)
               : pack_arborescences(collective, 0, router, placement);
  }
  double bound_gbps(Collective collective) const {
    return bandwidth_bound(collective, 0, router, placement).algbw_gbps;
  }

  Topology topology;
  Router router;
  Placement placement;
};

// Every host has two NICs of 25 GB/s for each pair of its eight GPUs.
TEST(StaggeredChains, UseAllNics) {
  const Machine machine("dgx-a100:nodes=2");
  const PackingProblem problem = machine.problem();
  const std::vector<SpanningTree> chains = staggered_chains(problem, machine.topology);
  ASSERT_EQ(chains.size(), 8u);
  for (const SpanningTree& one : chains) EXPECT_EQ(one.size(), 15u);
  const TreePacking packing = evenly(problem, chains);
  const Rational best = pack_spanning_trees(problem).rate;
  EXPECT_LE(packing.rate, best);
  EXPECT_GE(packing.rate * 2, best);
}

TEST(StaggeredChains, NeedLinksBetweenNeighbours) {
  const Machine machine("star:n=4,gbps=10");
  EXPECT_THAT(staggered_chains(machine.problem(), machine.topology), IsEmpty());
}

// 6 links of 25 GB/s each way at every GPU of 7, each in the stars of its two ends:
// 7 stars of 25/2 GB/s. Of no tree, with 6 edges, the 21 links can carry more than 21 * 25 / 6.
TEST(Stars, AreBestWhereAllLinksAreAlike) {
  const PackingProblem problem = Machine("full:n=7").problem();
  EXPECT_EQ(stars(problem).size(), 7u);
  const auto packing = best_stars(problem);
  ASSERT_TRUE(packing);
  EXPECT_EQ(packing->rate, packing->limit);
  EXPECT_EQ(packing->rate * problem.lower_unit, Rational(87'500'000'000));
  EXPECT_EQ(packing->rate, pack_spanning_trees(problem).rate);
}

TEST(Stars, NeedLinksFromEachRankToAllOthers) {
  EXPECT_THAT(stars(Machine("ring:n=5").problem()), IsEmpty());
  EXPECT_FALSE(best_stars(Machine("ring:n=5").problem()));
  EXPECT_THAT(stars(Machine("switch:n=5").problem()), IsEmpty());
}

// A GPU joined to others twice as fast, as on a DGX-1 with its single and double NVLinks: stars
// are trees, but not the best.
TEST(Stars, AreNotBestWhereLinksDiffer) {
  const Machine machine("dgx1-v100", {0, 1, 2, 3});
  EXPECT_FALSE(best_stars(machine.problem()));
}

// Among 300 GPUs a search would take a while. Allreduce: n/2 links' worth of rate; broadcast: the
// root has n - 1 links, and each of the others passes on what it gets.
TEST(Stars, AnswerForFullMeshesWithoutTime) {
  const Machine machine("full:n=300");
  const TimeLimit none(0);
  for (const Collective collective :
       {Collective::allreduce, Collective::broadcast, Collective::reduce, Collective::allgather}) {
    SCOPED_TRACE(to_string(collective));
    const Forest forest = machine.plan(collective);
    EXPECT_THAT(check_forest(forest, machine.router, machine.placement), IsEmpty());
    EXPECT_NEAR(forest.algbw_gbps, machine.bound_gbps(collective), 1e-6 * forest.algbw_gbps);
  }
}

// Node 0 lacks a GPU, so that nodes are not alike.
TEST(ReadyTrees, ArePlansForMoreRanksThanAreSearched) {
  std::vector<int> gpus;
  for (int gpu = 1; gpu < 536; ++gpu) gpus.push_back(gpu);
  const Machine machine("dgx-h100:nodes=67", gpus);
  for (const Collective collective :
       {Collective::allreduce, Collective::broadcast, Collective::allgather}) {
    SCOPED_TRACE(to_string(collective));
    const Forest forest = machine.plan(collective);
    EXPECT_THAT(check_forest(forest, machine.router, machine.placement), IsEmpty());
    EXPECT_THAT(forest.note, HasSubstr("above 512 ranks"));
    const double bound = machine.bound_gbps(collective);
    EXPECT_LE(forest.algbw_gbps, bound * (1 + 1e-9));
    EXPECT_GE(forest.algbw_gbps, 0.45 * bound);
  }
}

// Neighbours in number are none on a grid where rows end, so that there are no chains: one tree,
// which says that nothing was searched for.
TEST(ReadyTrees, SayThatNothingWasSearchedFor) {
  const Machine machine("torus:x=27,y=20");
  const TimeLimit none(0);
  for (const Collective collective : {Collective::allreduce, Collective::broadcast}) {
    SCOPED_TRACE(to_string(collective));
    const Forest forest = machine.plan(collective);
    EXPECT_THAT(check_forest(forest, machine.router, machine.placement), IsEmpty());
    EXPECT_THAT(forest.note, testing::HasSubstr("these need no search"));
  }
}

}  // namespace
}  // namespace espalier
