// SPDX-License-Identifier: Apache-2.0
// Plans of `optimal` where links share bandwidth: no link is overloaded, and what is planned is
// what the simulator measures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "planner/bounds.h"
#include "planner/link_loads.h"
#include "tests/algorithms/machines.h"
#include "topologies/placement.h"

namespace espalier::programs {
namespace {

constexpr Collective kPlanned[] = {
    Collective::broadcast,     Collective::reduce,    Collective::allgather,
    Collective::reducescatter, Collective::allreduce, Collective::gather,
    Collective::scatter,       Collective::alltoall,  Collective::sendrecv};

/// GPUs first, then NVSwitches; no links.
Topology bare_machine(int gpus, int switches) {
  Topology topology = load_topology("line:n=1");
  topology.nodes.clear();
  for (int i = 0; i < gpus + switches; ++i) {
    Node node;
    node.name = i < gpus ? "gpu" + std::to_string(i) : "sw" + std::to_string(i - gpus);
    node.kind = i < gpus ? NodeKind::gpu : NodeKind::nvswitch;
    topology.nodes.push_back(node);
  }
  return topology;
}

/// `medium`: empty for a link of its own.
Link& join(Topology& topology, NodeId a, NodeId b, double gbps, const std::string& medium = {}) {
  Link link;
  link.a = a;
  link.b = b;
  link.kind = "link";
  link.link_class = LinkClass::gpu_fabric;
  link.gbps = gbps;
  link.medium = medium;
  link.duplex = medium.empty() ? Duplex::full : Duplex::shared;
  return topology.links.emplace_back(link);
}

/// Simulated GB/s over planned ones, for a message so long that pipelines are full.
double attained(Machine& machine, const Forest& forest, Collective collective, int root) {
  constexpr double kSize = 1 << 30;
  const Program program =
      build(parse_algorithm("optimal:strips=0"), machine.request(collective, root), forest);
  RunOptions options;
  options.size_bytes = static_cast<std::int64_t>(kSize);
  Simulator simulator;
  const Chunking chunking = plan_chunking(program, kSize, 1 << 20, 1'000'000, /*stagger=*/true);
  return simulator.run(chunk(program, chunking), {&machine.router, machine.placement}, options)
             .algbw_gbps() /
         forest.algbw_gbps;
}

void expect_plan_holds(Machine& machine, Collective collective, int root, double fraction) {
  SCOPED_TRACE(to_string(collective));
  const Forest forest =
      plan(parse_algorithm("optimal:strips=0"), machine.request(collective, root));
  EXPECT_THAT(check_forest(forest, machine.router, machine.placement), testing::IsEmpty());
  const Bound bound = bandwidth_bound(collective, root, machine.router, machine.placement);
  EXPECT_LE(forest.algbw_gbps, bound.algbw_gbps * (1 + 1e-9));
  double fullest = 0;
  for (const LinkLoad& load : link_loads(forest, machine.router, machine.placement)) {
    fullest = std::max(fullest, share_used(load, forest));
  }
  EXPECT_LE(fullest, 1 + 1e-9);
  const double ratio = attained(machine, forest, collective, root);
  EXPECT_GE(ratio, fraction);
  EXPECT_LE(ratio, 1 + 1e-6);
}

/// gpu0 - sw0, gpu0 - sw2 - gpu1, and a bus from gpu1 over sw1 and sw0 to sw2, all of 20 GB/s.
Topology bus_of_three() {
  Topology topology = bare_machine(2, 3);
  enum : NodeId { gpu0, gpu1, sw0, sw1, sw2 };
  join(topology, gpu0, sw0, 20);
  join(topology, gpu0, sw2, 20);
  join(topology, gpu1, sw2, 20);
  join(topology, gpu1, sw1, 20, "bus");
  join(topology, sw1, sw0, 20, "bus");
  join(topology, sw2, sw0, 20, "bus");
  return topology;
}

TEST(SharedLinks, AWayPassesAMediumTwice) {
  Machine machine(bus_of_three());
  // gpu1 sends its half of the message over sw2 and over the bus, 20 GB/s each.
  const Forest forest =
      plan(parse_algorithm("optimal:strips=0"), machine.request(Collective::gather));
  EXPECT_EQ(forest.exact_algbw, "80");
  bool over_bus = false;
  for (const PlannedTree& tree : forest.trees) {
    for (const TreeEdge& edge : tree.edges) {
      over_bus = over_bus || edge.path == std::vector<NodeId>{2, 3};  // sw0, sw1
    }
  }
  EXPECT_TRUE(over_bus);
  for (const Collective collective : kPlanned) expect_plan_holds(machine, collective, 0, 0.97);
}

TEST(SharedLinks, AMediumLeftAndEnteredAgainIsPaidTwice) {
  // gpu1 - bus - sw1 - sw0 - bus - gpu0: half of the message crosses the bus twice.
  Topology topology = bare_machine(2, 2);
  join(topology, 0, 2, 40, "bus");
  join(topology, 1, 3, 40, "bus");
  join(topology, 2, 3, 100);
  Machine machine(std::move(topology));
  const Forest forest =
      plan(parse_algorithm("optimal:strips=0"), machine.request(Collective::gather));
  EXPECT_EQ(forest.exact_algbw, "40");
  for (const Collective collective : kPlanned) expect_plan_holds(machine, collective, 0, 0.97);
}

TEST(SharedLinks, RatesAreThoseOfTheFullestLink) {
  // A ring of four half-duplex links of 10 GB/s and a diagonal. Given to both directions in halves
  // they would carry 40/3 GB/s; no tree uses all of what it is given, and the fullest allows more.
  Topology topology = bare_machine(4, 0);
  for (const auto& [a, b] : {std::pair(0, 1), {1, 2}, {2, 3}, {3, 0}, {1, 3}}) {
    join(topology, a, b, 10).duplex = Duplex::half;
  }
  Machine machine(std::move(topology));
  for (const Collective collective : {Collective::allgather, Collective::reducescatter}) {
    const Forest forest = plan(parse_algorithm("optimal:strips=0"), machine.request(collective));
    double fullest = 0;
    for (const LinkLoad& load : link_loads(forest, machine.router, machine.placement)) {
      fullest = std::max(fullest, share_used(load, forest));
    }
    EXPECT_DOUBLE_EQ(fullest, 1);
    expect_plan_holds(machine, collective, 0, 0.97);
  }
}

TEST(SharedLinks, RandomMachines) {
  constexpr unsigned kSeed = 20261120;
  std::mt19937 random(kSeed);
  constexpr double kGbps[] = {10, 20, 40};
  int tried = 0;
  for (int trial = 0; tried < 12; ++trial) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", trial " << trial);
    const int gpus = 2 + static_cast<int>(random() % 3);
    const int switches = 1 + static_cast<int>(random() % 3);
    const double of_medium[] = {kGbps[random() % 3], kGbps[random() % 3]};
    Topology topology = bare_machine(gpus, switches);
    for (NodeId a = 0; a < gpus + switches; ++a) {
      for (NodeId b = a + 1; b < gpus + switches; ++b) {
        if (random() % 2 == 0) continue;
        const auto medium = random() % 4;
        if (medium < 2) {
          join(topology, a, b, of_medium[medium], "m" + std::to_string(medium));
        } else if (join(topology, a, b, kGbps[random() % 3]); random() % 5 == 0) {
          topology.links.back().duplex = Duplex::half;
        }
      }
    }
    ASSERT_TRUE(check_topology(topology).empty());
    Machine machine(std::move(topology));
    if (unreachable_pair(machine.router, machine.placement)) continue;
    ++tried;
    for (const Collective collective : kPlanned) {
      expect_plan_holds(machine, collective, static_cast<int>(random() % gpus), 0.97);
    }
  }
}

}  // namespace
}  // namespace espalier::programs
