// SPDX-License-Identifier: Apache-2.0
// What memory, reductions and start-up cost: one case of Dispatcher's table each, with its
// arithmetic.
#include <gtest/gtest.h>

#include "tests/sim/machine.h"

namespace espalier {
namespace {

constexpr std::int64_t kBytes = 1'000'000;

void expect_time(const RunReport& report, double wanted_s) {
  EXPECT_NEAR(report.time_s, wanted_s, 1e-9 * wanted_s);
}

/// Two GPUs joined at 10 GB/s; memories of 8 GB/s and reductions of 5 GB/s of input.
Topology slow_memory() {
  Topology topology = ring_machine(2, 10, 1e-6);
  for (Node& node : topology.nodes) {
    node.memory_gbps = 8;
    node.reduce_gbps = 5;
  }
  return topology;
}

Profile with_memory() {
  Profile profile = bare_profile();
  profile.models_memory = true;
  return profile;
}

Program copy(int from, int to) {
  Builder builder("copy", allreduce_contract(2));
  builder.copy(builder.output(to, 0, 1), builder.input(from, 0, 1));
  return builder.finish();
}

/// r1.out <- r1.in + r0.in
Program remote_combine() {
  Builder builder("combine", allreduce_contract(2));
  builder.combine(builder.output(1, 0, 1), {builder.input(1, 0, 1), builder.input(0, 0, 1)});
  return builder.finish();
}

/// r0.out <- r0.in + r0.tmp, both there
Program local_combine() {
  Builder builder("combine", allreduce_contract(2));
  builder.combine(builder.output(0, 0, 1), {builder.input(0, 0, 1), builder.tmp(0, 0, 1)});
  return builder.finish();
}

double bytes_of(const RunReport& report, const std::string& name) {
  for (const LinkUse& link : report.links) {
    if (link.name == name) return link.bytes;
  }
  return 0;
}

TEST(CostModel, ALocalCopyReadsAndWritesItsMemory) {
  const RunReport report = TestMachine(slow_memory(), with_memory()).run(copy(0, 0), kBytes);
  expect_time(report, 2e6 / 8e9);
  EXPECT_DOUBLE_EQ(bytes_of(report, "gpu0 memory"), 2e6);
}

TEST(CostModel, ALocalCopyPaysTheLocalStartUp) {
  Profile profile = with_memory();
  profile.local_overhead_s = 3e-6;
  expect_time(TestMachine(slow_memory(), profile).run(copy(0, 0), kBytes), 3e-6 + 2e6 / 8e9);
  profile.models_memory = false;
  expect_time(TestMachine(slow_memory(), profile).run(copy(0, 0), kBytes), 3e-6);
}

TEST(CostModel, ARemoteCopyReadsHereAndWritesThere) {
  const RunReport report = TestMachine(slow_memory(), with_memory()).run(copy(0, 1), kBytes);
  expect_time(report, 1e-6 + 1e6 / 8e9);
  EXPECT_DOUBLE_EQ(bytes_of(report, "gpu0 memory"), 1e6);
  EXPECT_DOUBLE_EQ(bytes_of(report, "gpu1 memory"), 1e6);
}

TEST(CostModel, AFreeReductionStillReadsAndWritesMemory) {
  const RunReport report = TestMachine(slow_memory(), with_memory()).run(remote_combine(), kBytes);
  // gpu1 reads its own operand and writes the result: 2 x 1 MB at 8 GB/s.
  expect_time(report, 1e-6 + 2e6 / 8e9);
  EXPECT_DOUBLE_EQ(bytes_of(report, "gpu0 memory"), 1e6);
  EXPECT_DOUBLE_EQ(bytes_of(report, "gpu1 memory"), 2e6);
}

TEST(CostModel, AFusedReductionConsumesAllOperandsAsTheyCome) {
  Profile profile = bare_profile();
  profile.reduction = ReductionMode::fused;
  const RunReport report = TestMachine(slow_memory(), profile).run(remote_combine(), kBytes);
  // Two operands of 1 MB at 5 GB/s take longer than the link.
  expect_time(report, 1e-6 + 2e6 / 5e9);
  EXPECT_DOUBLE_EQ(bytes_of(report, "gpu1 reduction"), 2e6);
  // A copy is no reduction.
  expect_time(TestMachine(slow_memory(), profile).run(copy(0, 1), kBytes), 1e-6 + 1e6 / 10e9);
  // Without remote operands: the same work, no wire.
  expect_time(TestMachine(slow_memory(), profile).run(local_combine(), kBytes), 2e6 / 5e9);
}

TEST(CostModel, FusedReductionsOfOneGpuShareItsRate) {
  Profile profile = bare_profile();
  profile.reduction = ReductionMode::fused;
  Topology topology = switch_machine(3, 1000, 0);
  for (Node& node : topology.nodes) node.reduce_gbps = 5;
  Builder builder("three", allreduce_contract(3));
  builder.combine(builder.output(0, 0, 1),
                  {builder.input(0, 0, 1), builder.input(1, 0, 1), builder.input(2, 0, 1)});
  const RunReport report = TestMachine(topology, profile).run(builder.finish(), kBytes);
  // The first flow carries the local operand too. Rates are equal: 2x + x = 5, so the flows end
  // together and 3 MB take 3e6 / 5e9.
  expect_time(report, 3e6 / 5e9);
  EXPECT_DOUBLE_EQ(bytes_of(report, "gpu0 reduction"), 3e6);
}

TEST(CostModel, ASeparateReductionFollowsTheTransfer) {
  Profile profile = bare_profile();
  profile.reduction = ReductionMode::separate;
  profile.reduce_overhead_s = 4e-6;
  const TestMachine machine(slow_memory(), profile);
  // 1 us + 1 MB / 10 GB/s, then 4 us + 2 MB / 5 GB/s.
  expect_time(machine.run(remote_combine(), kBytes), 1e-6 + 1e6 / 10e9 + 4e-6 + 2e6 / 5e9);
  expect_time(machine.run(local_combine(), kBytes), 4e-6 + 2e6 / 5e9);
  expect_time(machine.run(copy(0, 1), kBytes), 1e-6 + 1e6 / 10e9);
  expect_time(machine.run(remote_combine(), 0), 1e-6 + 4e-6);
}

TEST(CostModel, ASeparateReductionWritesOperandsFirst) {
  Profile profile = with_memory();
  profile.reduction = ReductionMode::separate;
  Topology topology = slow_memory();
  topology.nodes[1].reduce_gbps = 0;  // not known: only memory counts
  const RunReport report = TestMachine(topology, profile).run(remote_combine(), kBytes);
  // Arrival writes 1 MB at 8 GB/s; the reduction then reads two and writes one.
  expect_time(report, 1e-6 + 1e6 / 8e9 + 3e6 / 8e9);
  EXPECT_DOUBLE_EQ(bytes_of(report, "gpu1 memory"), 4e6);
}

TEST(CostModel, AnOpPaysTheLargestStartUpOfItsRoutesOnce) {
  Profile profile = bare_profile();
  profile.links["nvlink2"] = {.efficiency = 0.8, .overhead_s = 10e-6};
  profile.links["slow"] = {.efficiency = 0.5, .overhead_s = 20e-6};
  Topology topology = ring_machine(3, 10, 1e-6);  // links 0-1, 1-2, 2-0
  topology.links[2].kind = "slow";
  const TestMachine machine(topology, profile);
  // 0.8 of 10 GB/s.
  Builder one("one", allreduce_contract(3));
  one.copy(one.output(0, 0, 1), one.input(1, 0, 1));
  expect_time(machine.run(one.finish(), kBytes), 10e-6 + 1e-6 + 1e6 / 8e9);
  // From r1 at 8 GB/s and from r2 at 5 GB/s, both started by one launch of 20 us.
  Builder two("two", allreduce_contract(3));
  two.combine(two.output(0, 0, 1), {two.input(0, 0, 1), two.input(1, 0, 1), two.input(2, 0, 1)});
  expect_time(machine.run(two.finish(), kBytes), 20e-6 + 1e-6 + 1e6 / 5e9);
}

}  // namespace
}  // namespace espalier
