// SPDX-License-Identifier: Apache-2.0
// Flows that are found shape by shape, against those of each op by itself.
#include "sim/op_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "sim/class_engine.h"
#include "sim/simulation.h"
#include "tests/sim/alike_groups.h"
#include "tests/sim/machine.h"
#include "topologies/load.h"

namespace espalier {
namespace {

void expect_same(const FlowList& list, const FlowList& expected) {
  EXPECT_EQ(list.landing_s, expected.landing_s);
  EXPECT_EQ(list.transfers, expected.transfers);
  EXPECT_EQ(list.resources, expected.resources);
  ASSERT_EQ(list.flows.size(), expected.flows.size());
  for (std::size_t i = 0; i < list.flows.size(); ++i) {
    EXPECT_EQ(list.flows[i].latency_s, expected.flows[i].latency_s);
    EXPECT_EQ(list.flows[i].bytes, expected.flows[i].bytes);
    EXPECT_EQ(list.flows[i].alone, expected.flows[i].alone);
    EXPECT_EQ(list.flows[i].first_resource, expected.flows[i].first_resource);
    EXPECT_EQ(list.flows[i].resource_count, expected.flows[i].resource_count);
  }
}

/// The flows of a simulation's ops, on resources that are made as they are first used.
struct Flows {
  explicit Flows(const Simulation& of)
      : resources(of.program, of.target, of.unit, begun(engine), of.message_bytes),
        machine(of.program, of.blocks, of.profile(), of.message_bytes, resources) {}
  static ClassEngine& begun(ClassEngine& engine) {
    engine.begin({});
    return engine;
  }

  ClassEngine engine;
  MachineResources resources;
  MachineFlows machine;
};

/// Of all shapes; how many have their flows from another lane.
std::size_t expect_flows_of_ops(const TestMachine& machine, const Program& program,
                                const BlockUse& blocks = {}) {
  RunOptions options;
  options.size_bytes = program.contract.units * kUnitBytes;
  options.blocks = blocks;
  const Simulation of(program, machine.target(), options);
  Flows one_by_one(of);
  Flows by_shape(of);
  const auto numbers = std::make_shared<const ShapeNumbers>(program, by_shape.machine);
  OpShapes shapes(by_shape.machine, numbers);
  std::size_t on_other_lanes = 0;
  for (std::uint32_t shape = 0; shape < numbers->examples().size(); ++shape) {
    const OpId id = numbers->examples()[shape];
    EXPECT_LE(numbers->first_but_for_lane(shape), shape);
    if (numbers->first_but_for_lane(shape) < shape) ++on_other_lanes;
    expect_same(shapes.begin(id), one_by_one.machine.begin(id));
    if (shapes.reduces_separately(id)) {
      expect_same(shapes.reduce(id), one_by_one.machine.reduce(id));
    }
  }
  const std::vector<LinkUse> carried = by_shape.resources.report(1);
  const std::vector<LinkUse> expected = one_by_one.resources.report(1);
  EXPECT_EQ(carried.size(), expected.size());
  for (std::size_t i = 0; i < std::min(carried.size(), expected.size()); ++i) {
    EXPECT_EQ(carried[i].name, expected[i].name);
    EXPECT_EQ(carried[i].bytes, expected[i].bytes);
  }
  return on_other_lanes;
}

/// Those on other lanes are taken from the first lane that has them, so that nothing but lanes may
/// tell them apart: blocks, their number, and where they are on their lanes.
TEST(OpShapes, HaveTheFlowsThatOpsHaveByThemselves) {
  std::size_t on_other_lanes = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    AlikeGroups groups(random, 2);
    const Program program = groups.program();
    Profile profile = groups.profile_of_steps();
    if (seed % 3 == 0) profile.protocol.drift_ops = 2;
    BlockUse blocks;
    if (seed % 4 == 1) {
      blocks = {.one_per_lane = true, .rate = 0.5 + seed % 3, .streams = seed % 8 == 1};
    }
    if (seed % 5 == 0) blocks.ops_per_local = 2;
    on_other_lanes += expect_flows_of_ops(TestMachine(groups.topology(), profile), program, blocks);
    if (HasFailure()) return;
  }
  EXPECT_GT(on_other_lanes, 300U);
}

/// Two lanes of each rank add up what its neighbours have, here or on the next rank, and what it
/// has itself; the lanes' blocks are among what several transfers of an op use.
TEST(OpShapes, HaveTheFlowsOfOpsWithSeveralTransfers) {
  constexpr int kRanks = 4;
  Builder builder("several", allreduce_contract(kRanks, kRanks));
  for (int lane = 0; lane < 2; ++lane) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto input = [&](int of) { return builder.input((rank + of) % kRanks, lane, 1); };
      for (const int dst : {0, 1}) {
        builder.combine(builder.tmp((rank + dst) % kRanks, lane + kRanks * dst, 1),
                        {input(0), input(1), input(3)}, {.lane = lane, .at = rank});
      }
      builder.copy(builder.tmp(rank, 2 * kRanks + lane, 1), input(0), {.lane = lane});
    }
  }
  const Program program = builder.finish();
  for (const ReductionMode mode : {ReductionMode::free, ReductionMode::fused,
                                   ReductionMode::separate, ReductionMode::reading}) {
    Profile profile = bare_profile();
    profile.blocks = 2;
    profile.protocol.block_gbps["other"] = 10;
    profile.reduction = mode;
    Topology topology = switch_machine(kRanks, 25, kUs);
    for (int gpu = 0; gpu < kRanks; ++gpu) topology.node(gpu).model = "other";
    EXPECT_EQ(expect_flows_of_ops(TestMachine(topology, profile), program), 3U * kRanks);
  }
}

/// Proxies post messages for what leaves a host, beside the transfer.
TEST(OpShapes, HaveTheFlowsOfMessagesBetweenHosts) {
  const Topology machine = load_topology("dgx-a100:nodes=2");
  Builder builder("two rings", allreduce_contract(16, 16));
  for (int lane = 0; lane < 2; ++lane) {
    for (int rank = 0; rank < 16; ++rank) {
      builder.copy(builder.tmp((rank + 1) % 16, lane, 1), builder.input(rank, lane, 1),
                   {.lane = lane});
    }
  }
  const Program program = builder.finish();
  for (const char* profile : {"nccl:simple", "nccl:ll", "kernel", "copy_engine"}) {
    EXPECT_EQ(expect_flows_of_ops(TestMachine(machine, machine.profile(profile)), program), 16U)
        << profile;
  }
}

}  // namespace
}  // namespace espalier
