// SPDX-License-Identifier: Apache-2.0
// Machines of alike nodes are planned by one node, and joined by trees over nodes.
#include "planner/cells/cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/alike_nodes.h"
#include "planner/bounds.h"
#include "planner/cells/cell_trees.h"
#include "planner/cells/plan_cells.h"
#include "planner/pack_allreduce.h"
#include "planner/pack_arborescences.h"
#include "topologies/load.h"

namespace espalier {
namespace {

struct MachineOfCells {
  explicit MachineOfCells(Topology given)
      : topology(std::move(given)),
        router(topology, topology.profile("kernel"), LinkScope::all),
        placement(place_ranks(router, {})) {}
  explicit MachineOfCells(const std::string& name) : MachineOfCells(load_topology(name)) {}

  std::optional<Cells> cells() const {
    return find_cells(packing_problem(router, placement, EdgeUse::both_ways), topology);
  }
  Forest plan(Collective collective) const {
    return collective == Collective::allreduce
               ? pack_allreduce(router, placement)
               : pack_arborescences(collective, 0, router, placement);
  }
  double bound_gbps(Collective collective) const {
    return bandwidth_bound(collective, 0, router, placement, {.in_switches = false}).algbw_gbps;
  }

  Topology topology;
  Router router;
  Placement placement;
};

bool is_same(const PlannedTree& a, const PlannedTree& b) {
  return a.root == b.root && a.weight == b.weight && a.edges == b.edges;
}

int tallest(const Forest& forest) {
  int height = 0;
  for (const PlannedTree& tree : forest.trees) height = std::max(height, tree.height());
  return height;
}

TEST(Cells, AreTheNodesOfACluster) {
  const auto cells = MachineOfCells("dgx-h100:nodes=3").cells();
  ASSERT_TRUE(cells);
  EXPECT_EQ(cells->count(), 3);
  EXPECT_EQ(cells->ranks, 8);
  // As ranks 0-7, 8-15 and 16-23 stand in the machine.
  EXPECT_EQ(cells->vertices[1][2], 10);
  EXPECT_EQ(cells->position[10], 2);
  for (const auto& resources : cells->resources) {
    EXPECT_EQ(resources.size(), cells->resources.front().size());
  }
}

TEST(Cells, OfASwitchAreItsGpus) {
  const auto cells = MachineOfCells("switch:n=12").cells();
  ASSERT_TRUE(cells);
  EXPECT_EQ(cells->count(), 12);
  EXPECT_EQ(cells->ranks, 1);
}

TEST(Cells, AreNotSeenWhereNodesDifferOrNothingJoinsThem) {
  EXPECT_FALSE(MachineOfCells("dgx1-v100").cells());
  EXPECT_FALSE(MachineOfCells("torus:x=4,y=4").cells());
  for (const char* link : {"a GPU's", "a NIC's"}) {
    SCOPED_TRACE(link);
    Topology topology = load_topology("dgx-h100:nodes=16");
    const std::string end = link == std::string("a GPU's") ? "n9.gpu3" : "n9.nic3";
    const auto broken = std::ranges::find_if(
        topology.links, [&](const Link& one) { return one.a == topology.find(end); });
    ASSERT_NE(broken, topology.links.end());
    broken->gbps /= 2;
    broken->measured_gbps /= 2;
    EXPECT_FALSE(MachineOfCells(topology).cells());
  }
}

TEST(Cells, TellWhetherAMachineIsPlannedByNodes) {
  const MachineOfCells cluster("dgx-h100:nodes=65");
  EXPECT_TRUE(can_plan_by_nodes(Collective::allreduce, cluster.router, cluster.placement));
  EXPECT_TRUE(can_plan_by_nodes(Collective::allgather, cluster.router, cluster.placement));
  EXPECT_FALSE(can_plan_by_nodes(Collective::broadcast, cluster.router, cluster.placement));
  const MachineOfCells ring("ring:n=520");
  EXPECT_FALSE(can_plan_by_nodes(Collective::allreduce, ring.router, ring.placement));
}

TEST(Cells, PlanTheTreesPerRootThatWereAskedFor) {
  const MachineOfCells cluster("dgx-a100:nodes=16");
  const Forest free = cluster.plan(Collective::allgather);
  // One tree of every rank: also two of half the weight, which are alike.
  ASSERT_EQ(free.trees.size(), 128U);
  for (const std::int64_t k : {1, 2}) {
    SCOPED_TRACE(k);
    const Forest asked = pack_arborescences(Collective::allgather, 0, cluster.router,
                                            cluster.placement, {.trees_per_root = k});
    EXPECT_TRUE(std::ranges::equal(asked.trees, free.trees, is_same));
  }
}

TEST(CellTrees, GiveEveryCellAsManyNeighbours) {
  for (int n = 2; n <= 33; ++n) {
    SCOPED_TRACE(n);
    const std::vector<CellTree> trees = balanced_cell_trees(n);
    ASSERT_EQ(trees.size(), static_cast<std::size_t>(n));
    std::vector<int> neighbours(static_cast<std::size_t>(n), 0), of_two = neighbours;
    for (std::size_t i = 0; i < trees.size(); ++i) {
      if (i % 2 == 0) of_two.assign(of_two.size(), 0);
      std::set<int> reached{trees[i].top};
      for (const auto& [parent, child] : trees[i].edges) {
        EXPECT_TRUE(reached.contains(parent));
        EXPECT_TRUE(reached.insert(child).second);
        for (const int cell : {parent, child}) {
          ++neighbours[static_cast<std::size_t>(cell)];
          ++of_two[static_cast<std::size_t>(cell)];
        }
      }
      EXPECT_EQ(reached.size(), static_cast<std::size_t>(n));
      EXPECT_LE(std::ranges::max(of_two), 4);
    }
    EXPECT_THAT(neighbours, testing::Each(2 * (n - 1)));
  }
}

TEST(CellTrees, StandOnTheCellAskedFor) {
  for (int top = 0; top < 7; ++top) {
    const CellTree tree = cell_tree_from(top, 7);
    EXPECT_EQ(tree.top, top);
    EXPECT_EQ(tree.edges.front().first, top);
    EXPECT_EQ(tree.edges.size(), 6u);
  }
}

struct PlannedByCells {
  const char* machine;
  Collective collective;
  double of_bound;
};

void PrintTo(const PlannedByCells& planned, std::ostream* out) {
  *out << planned.machine << ' ' << to_string(planned.collective);
}

class PlanByCells : public testing::TestWithParam<PlannedByCells> {};

TEST_P(PlanByCells, IsAPlanNearTheBound) {
  const auto [name, collective, of_bound] = GetParam();
  const MachineOfCells machine(name);
  const auto forest = plan_by_cells(collective, machine.router, machine.placement);
  ASSERT_TRUE(forest);
  EXPECT_THAT(check_forest(*forest, machine.router, machine.placement), testing::IsEmpty());
  const double bound = machine.bound_gbps(collective);
  EXPECT_GE(forest->algbw_gbps, of_bound * bound);
  EXPECT_LE(forest->algbw_gbps, bound * (1 + 1e-9));
  // Down (or up) a node's trees, and over the nodes.
  EXPECT_LE(tallest(*forest), 12);
  EXPECT_EQ(machine.plan(collective).exact_algbw, forest->exact_algbw);
  const auto again = plan_by_cells(collective, machine.router, machine.placement);
  EXPECT_TRUE(std::ranges::equal(again->trees, forest->trees, is_same));
}

INSTANTIATE_TEST_SUITE_P(
    Machines, PlanByCells,
    testing::Values(PlannedByCells{"dgx-h100:nodes=16", Collective::allreduce, 0.99},
                    PlannedByCells{"dgx-h100:nodes=9", Collective::allgather, 0.99},
                    PlannedByCells{"dgx-h100:nodes=9", Collective::reducescatter, 0.99},
                    PlannedByCells{"dgx-a100:nodes=11", Collective::allreduce, 0.99},
                    PlannedByCells{"dgx-a100:nodes=11", Collective::allgather, 0.99},
                    PlannedByCells{"p3.16xlarge:nodes=9", Collective::allreduce, 0.99},
                    PlannedByCells{"p3.16xlarge:nodes=9", Collective::allgather, 0.99},
                    PlannedByCells{"kesch:nodes=12", Collective::allreduce, 0.99},
                    PlannedByCells{"switch:n=100", Collective::allreduce, 0.99},
                    PlannedByCells{"switch:n=100", Collective::allgather, 0.99}));

TEST(PlanByCellsOf, AThousandGpus) {
  const MachineOfCells machine("dgx-h100:nodes=128");
  const Forest forest = machine.plan(Collective::allreduce);
  EXPECT_GE(forest.algbw_gbps, 0.98 * machine.bound_gbps(Collective::allreduce));
  EXPECT_LE(forest.trees.size(), 16u);
}

/// Every GPU has a NIC, and the trees of all GPUs of a node are the same, turned: their edges come
/// in one order, so that GPUs behave alike.
TEST(PlanByCellsOf, GpusWithANicEachIsTheSameForAll) {
  const MachineOfCells machine("dgx-h100:nodes=64");
  const Forest forest = machine.plan(Collective::allreduce);
  std::map<int, const PlannedTree*> by_root;
  for (const PlannedTree& tree : forest.trees) by_root[tree.root] = &tree;
  ASSERT_EQ(by_root.size(), 512U);
  const auto turned = [](int rank) { return rank / 8 * 8 + (rank + 1) % 8; };
  for (const auto& [root, tree] : by_root) {
    const PlannedTree& next = *by_root[turned(root)];
    ASSERT_TRUE(std::ranges::equal(next.edges, tree->edges,
                                   [&](const TreeEdge& edge, const TreeEdge& of_tree) {
                                     return edge.parent == turned(of_tree.parent) &&
                                            edge.child == turned(of_tree.child);
                                   }))
        << root;
  }
}

TEST(PlanByCellsOf, TheFirstTreesShareTheNetwork) {
  // Few trees are all that a program is made of: a tree of each NIC, twice.
  const MachineOfCells machine("dgx-h100:nodes=16");
  const Forest few = round_weights(machine.plan(Collective::allreduce), 16);
  ASSERT_EQ(few.trees.size(), 16u);
  std::map<std::string, int> trees_by_nic;
  for (const PlannedTree& tree : few.trees) {
    std::set<std::string> nics;
    for (const TreeEdge& edge : tree.edges) {
      for (const NodeId node : edge.path) {
        const std::string& name = machine.topology.node(node).name;
        if (name.find(".nic") != std::string::npos) nics.insert(name);
      }
    }
    EXPECT_EQ(nics.size(), 16u);
    for (const std::string& nic : nics) ++trees_by_nic[nic];
  }
  EXPECT_EQ(trees_by_nic.size(), 128u);
  for (const auto& [nic, trees] : trees_by_nic) EXPECT_EQ(trees, 2) << nic;
}

}  // namespace
}  // namespace espalier
