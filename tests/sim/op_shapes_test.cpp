// SPDX-License-Identifier: Apache-2.0
// Flows that are found shape by shape, against those of each op by itself.
#include "sim/op_shapes.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>

#include "sim/class_engine.h"
#include "sim/simulation.h"
#include "tests/sim/alike_groups.h"
#include "tests/sim/machine.h"

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
    const TestMachine machine(groups.topology(), profile);
    RunOptions options;
    options.size_bytes = program.contract.units * kUnitBytes;
    const Simulation of(program, machine.target(), options);
    Flows one_by_one(of);
    Flows by_shape(of);
    const auto numbers = std::make_shared<const ShapeNumbers>(program, by_shape.machine);
    OpShapes shapes(by_shape.machine, numbers);
    for (std::uint32_t shape = 0; shape < numbers->examples().size(); ++shape) {
      const OpId id = numbers->examples()[shape];
      const std::uint32_t first = numbers->on_first_lane(shape);
      ASSERT_LE(first, shape);
      EXPECT_EQ(program.ops[numbers->examples()[first]].at, program.ops[id].at);
      if (first < shape) ++on_other_lanes;
      expect_same(shapes.begin(id), one_by_one.machine.begin(id));
      if (!shapes.reduces_separately(id)) continue;
      expect_same(shapes.reduce(id), one_by_one.machine.reduce(id));
    }
    EXPECT_EQ(by_shape.resources.longest_busy().any_s, one_by_one.resources.longest_busy().any_s);
    EXPECT_EQ(by_shape.resources.longest_busy().link_s, one_by_one.resources.longest_busy().link_s);
    if (HasFailure()) return;
  }
  EXPECT_GT(on_other_lanes, 300U);
}

}  // namespace
}  // namespace espalier
