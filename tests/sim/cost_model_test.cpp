// SPDX-License-Identifier: Apache-2.0
// What memory, reductions and start-up cost: one case of Dispatcher's table each, with its
// arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/sim/machine.h"

namespace espalier {
namespace {

constexpr std::int64_t kBytes = 1'000'000;

void expect_time(const RunReport& report, double wanted_s) {
  EXPECT_NEAR(report.time_s, wanted_s, 1e-9 * wanted_s);
}

/// Two GPUs joined at 10 GB/s; memories of 8 GB/s, which add at 5 GB/s.
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
  for (const LinkUse& link : report.simulated->links) {
    if (link.name == name) return link.bytes;
  }
  return 0;
}

/// Two copies at once, one in each GPU.
Program two_local_copies() {
  Builder builder("copies", allreduce_contract(2));
  for (int rank = 0; rank < 2; ++rank) {
    builder.copy(builder.output(rank, 0, 1), builder.input(rank, 0, 1));
  }
  return builder.finish();
}

/// Two GPUs whose ops read and write 8 GB/s each, with parts of a memory of 10 GB/s that adds at 4.
Topology shared_memory() {
  Topology topology = ring_machine(2, 100, 0);
  topology.memories["ram"] = {10, 4};
  for (Node& node : topology.nodes) {
    node.access_gbps = 8;
    node.memory = "ram";
  }
  return topology;
}

TEST(CostModel, OpsAloneGoAtTheirAccessRateAndTogetherAtThatOfTheSharedMemory) {
  Profile profile = with_memory();
  profile.reduction = ReductionMode::fused;
  const TestMachine machine(shared_memory(), profile);
  // 1 MB is read and written: 2 MB at 8 GB/s, wherever it is.
  expect_time(machine.run(copy(0, 0), kBytes), 2e6 / 8e9);
  expect_time(machine.run(copy(0, 1), kBytes), 2e6 / 8e9);
  // 4 MB in all at 10 GB/s.
  expect_time(machine.run(two_local_copies(), kBytes), 4e6 / 10e9);
  // Three accesses of 1 MB each: 8 GB/s allow 0.375 ms, 10 GB/s 0.3; one addition at 4 GB/s 0.25.
  expect_time(machine.run(local_combine(), kBytes), 3e6 / 8e9);
  expect_time(machine.run(remote_combine(), kBytes), 3e6 / 8e9);
}

TEST(CostModel, CopyEnginesAreNoAccessOfKernels) {
  Profile profile = with_memory();
  profile.reduction = ReductionMode::separate;
  const TestMachine machine(shared_memory(), profile);
  expect_time(machine.run(copy(0, 0), kBytes), 2e6 / 10e9);
  // The operand comes, 2 MB of the shared memory, and is then added by a kernel: 3 MB at 8 GB/s.
  expect_time(machine.run(remote_combine(), kBytes), 2e6 / 10e9 + 3e6 / 8e9);
}

TEST(CostModel, WhatIsBusiestIsKnownWhereNoLinksAreListed) {
  Profile profile = with_memory();
  profile.reduction = ReductionMode::separate;
  const TestMachine machine(shared_memory(), profile);
  const Program program = remote_combine();
  RunOptions options;
  options.size_bytes = kBytes;
  const SimulatedPart listed = *Simulator().run(program, machine.target(), options).simulated;
  options.details = false;
  const SimulatedPart unlisted = *Simulator().run(program, machine.target(), options).simulated;
  EXPECT_TRUE(unlisted.links.empty());
  EXPECT_EQ(unlisted.busiest_s, listed.busiest_s);
  EXPECT_EQ(unlisted.busiest_link_s, listed.busiest_link_s);
  const auto link = std::ranges::find_if(listed.links, &LinkUse::is_link);
  ASSERT_NE(link, listed.links.end());
  EXPECT_EQ(listed.busiest_s, listed.links.front().busy_s);  // the shared memory
  EXPECT_EQ(listed.busiest_link_s, link->busy_s);
  EXPECT_GT(listed.busiest_s, listed.busiest_link_s);
}

TEST(CostModel, SharedMemoryAddsAtItsRate) {
  Topology topology = shared_memory();
  topology.memories["ram"].reduce_gbps = 1;
  Profile profile = with_memory();
  profile.reduction = ReductionMode::fused;
  // 1 MB is added at 1 GB/s.
  expect_time(TestMachine(topology, profile).run(local_combine(), kBytes), 1e6 / 1e9);
}

TEST(CostModel, ASmallWorkingSetIsInCaches) {
  Topology topology = shared_memory();
  topology.memories["ram"].working_sets = {{2e6, {40}, {30}}, {8e6, {20}, {10}}};
  Profile profile = with_memory();
  profile.reduction = ReductionMode::fused;
  const TestMachine machine(topology, profile);
  // 0.1 MB is read and written: 0.2 MB at 30 GB/s, by each of two at once at 40 GB/s.
  expect_time(machine.run(copy(0, 0), kBytes / 10), 0.2e6 / 30e9);
  expect_time(machine.run(two_local_copies(), kBytes / 10), 0.4e6 / 40e9);
  // 4 MB of a GPU, half of the way from 2 to 8 MB on a scale of logarithms: a byte takes the mean
  // of 1/30 and 1/10 ns, or of 1/40 and 1/20 where both are at it.
  expect_time(machine.run(copy(0, 0), 2 * kBytes), 4e6 * (1.0 / 30 + 1.0 / 10) / 2 * 1e-9);
  expect_time(machine.run(two_local_copies(), 2 * kBytes), 8e6 * (1.0 / 40 + 1.0 / 20) / 2 * 1e-9);
  // From 16 MB on, the figures without caches; at half of the way to there, the mean.
  expect_time(machine.run(copy(0, 0), 8 * kBytes), 16e6 / 8e9);
  const auto halfway = static_cast<std::int64_t>(std::sqrt(32.0) * kBytes);
  const auto moved = 2 * static_cast<double>(halfway);
  EXPECT_NEAR(machine.run(copy(0, 0), halfway).time_s, moved * (1.0 / 10 + 1.0 / 8) / 2 * 1e-9,
              1e-6 * moved * 1e-9);
}

TEST(CostModel, WhatIsTouchedAgainIsTouchedOnce) {
  Topology topology = shared_memory();
  topology.memories["ram"].working_sets = {{2e6, {40}, {30}}, {8e6, {20}, {10}}};
  Profile profile = with_memory();
  profile.reduction = ReductionMode::fused;
  // The same megabyte is copied twice, in halves and as a whole: 2 MB are touched, 4 MB moved.
  Builder builder("twice", {.ranks = 2, .units = 2});
  for (int half = 0; half < 2; ++half) {
    builder.copy(builder.output(0, half, 1), builder.input(0, half, 1));
  }
  builder.copy(builder.output(0, 0, 2), builder.input(0, 0, 2));
  const Program twice = builder.finish();
  expect_time(TestMachine(topology, profile).run(twice, kBytes), 4e6 / 30e9);
  // An operand that is stored on arrival before it is added is touched, too: 1 MB each of r1.in,
  // r1.out and the operand make 3 MB of GPU 1, a part log(1.5) / log(4) of the way from 2 to 8. It
  // arrives in two accesses at what both reach, for (1 + 3) / 2 MB in the mean.
  profile.reduction = ReductionMode::separate;
  const double part = std::log(1.5) / std::log(4);
  const double adding_s = 3e6 * ((1 - part) / 30 + part / 10) * 1e-9;
  expect_time(TestMachine(topology, profile).run(remote_combine(), kBytes), 2e6 / 40e9 + adding_s);
}

TEST(CostModel, ProcessesGetDataFromEachOtherAtARateOfItsOwn) {
  Topology topology = shared_memory();
  topology.memories["ram"].exchange = {3};
  for (Node& node : topology.nodes) node.exchange = {2};
  Profile profile = with_memory();
  profile.reduction = ReductionMode::separate;
  const TestMachine machine(topology, profile);
  // 1 MB at 2 GB/s; both ways at once 2 MB at 3 GB/s, instead of 4 MB of memory at 10.
  expect_time(machine.run(copy(0, 1), kBytes), 1e6 / 2e9);
  Builder builder("both", allreduce_contract(2));
  builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.output(0, 0, 1), builder.input(1, 0, 1));
  expect_time(machine.run(builder.finish(), kBytes), 2e6 / 3e9);
  // Within a process nothing is exchanged.
  expect_time(machine.run(copy(0, 0), kBytes), 2e6 / 10e9);
}

TEST(CostModel, WhatIsUnchangedComesFasterAndWhatIsPassedOnMoreSlowly) {
  Topology topology = shared_memory();
  topology.memories["ram"].exchange = {6, 8, 3};
  for (Node& node : topology.nodes) node.exchange = {2, 4, 1};
  Profile profile = with_memory();
  profile.reduction = ReductionMode::separate;
  const TestMachine machine(topology, profile);
  // An input, which nobody writes: 1 MB at 4 GB/s.
  expect_time(machine.run(copy(0, 1), kBytes), 1e6 / 4e9);
  // Scratch memory is written anew in each run: at 2 GB/s.
  Builder fresh("fresh", allreduce_contract(2));
  fresh.copy(fresh.output(1, 0, 1), fresh.tmp(0, 0, 1));
  expect_time(machine.run(fresh.finish(), kBytes), 1e6 / 2e9);
  // What comes to r1.out at 1 GB/s goes back from there at 2.
  Builder back("to and fro", allreduce_contract(2));
  back.copy(back.output(1, 0, 1), back.input(0, 0, 1));
  back.copy(back.output(0, 0, 1), back.output(1, 0, 1));
  expect_time(machine.run(back.finish(), kBytes), 1e6 / 1e9 + 1e6 / 2e9);
}

/// r1 fetches 1 MB of r0, at the rate given, and combines 1 MB of its own on another lane.
RunReport fetch_and_combine(double exchange_gbps) {
  Topology topology = shared_memory();
  topology.memories["ram"] = {};
  topology.memories["ram"].gbps = 100;
  for (Node& node : topology.nodes) node.exchange = {exchange_gbps};
  Profile profile = with_memory();
  profile.reduction = ReductionMode::separate;
  Builder builder("both", allreduce_contract(2));
  builder.copy(builder.output(1, 0, 1), builder.tmp(0, 0, 1));
  builder.combine(builder.tmp(1, 0, 1), {builder.input(1, 0, 1), builder.tmp(1, 1, 1)},
                  {.lane = 1});
  return TestMachine(topology, profile).run(builder.finish(), kBytes);
}

TEST(CostModel, AProcessThatFetchesDoesNothingElse) {
  // While 1 MB comes at 2 GB/s, 4 MB could be read and written at 8. Combining reads and writes 3.
  expect_time(fetch_and_combine(2), 7e6 / 8e9);
}

/// At 3.2 GB/s it takes as long as two and a half accesses, and a rate that is hardly lower than
/// one does not make a whole one more.
TEST(CostModel, WhatAFetchTakesIsNoWholeNumberOfAccesses) {
  const auto time_s = [](double exchange_gbps) { return fetch_and_combine(exchange_gbps).time_s; };
  EXPECT_NEAR(time_s(3.2), 5.5e6 / 8e9, 1e-12);
  EXPECT_NEAR(time_s(4.01), time_s(3.99), 0.06 * time_s(4));
}

TEST(CostModel, LongerMessagesCostMoreToStart) {
  Profile profile = bare_profile();
  profile.links["nvlink2"] = {1, 1e-6, {{4096, 3e-6}, {65536, 5e-6}}};
  const TestMachine machine(ring_machine(2, 10, 0), profile);
  for (const auto& [bytes, start_up_s] :
       {std::pair{1024, 1e-6}, {4096, 1e-6}, {4100, 3e-6}, {65536, 3e-6}, {131072, 5e-6}}) {
    expect_time(machine.run(copy(0, 1), bytes), start_up_s + bytes / 10e9);
  }
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

/// r0.out <- the inputs of r0, ..., r(ranks - 1), carried out at `at`
Program combine_all(int ranks, PlaceId at = 0) {
  Builder builder("all", allreduce_contract(ranks));
  std::vector<Slice> inputs;
  for (int rank = 0; rank < ranks; ++rank) inputs.push_back(builder.input(rank, 0, 1));
  builder.combine(builder.output(0, 0, 1), inputs, {.at = at});
  return builder.finish();
}

TEST(CostModel, AFusedReductionAddsOperandsAsTheyCome) {
  Profile profile = bare_profile();
  profile.reduction = ReductionMode::fused;
  const RunReport report = TestMachine(slow_memory(), profile).run(remote_combine(), kBytes);
  // One addition of 1 MB at 5 GB/s takes longer than the link.
  expect_time(report, 1e-6 + 1e6 / 5e9);
  EXPECT_DOUBLE_EQ(bytes_of(report, "gpu1 reduction"), 1e6);
  // A copy is no reduction.
  expect_time(TestMachine(slow_memory(), profile).run(copy(0, 1), kBytes), 1e-6 + 1e6 / 10e9);
  // Without remote operands: the same work, no wire.
  expect_time(TestMachine(slow_memory(), profile).run(local_combine(), kBytes), 1e6 / 5e9);
}

TEST(CostModel, FusedReductionsOfOneGpuShareItsRate) {
  Profile profile = bare_profile();
  profile.reduction = ReductionMode::fused;
  Topology topology = switch_machine(3, 1000, 0);
  for (Node& node : topology.nodes) node.reduce_gbps = 5;
  const RunReport report = TestMachine(topology, profile).run(combine_all(3), kBytes);
  // Two operands come and are added to the local one, at 2.5 GB/s each.
  expect_time(report, 2e6 / 5e9);
  EXPECT_DOUBLE_EQ(bytes_of(report, "gpu0 reduction"), 2e6);
}

TEST(CostModel, FusedAdditionsOfSeveralLocalOperandsGoWithTheFirstFlow) {
  Profile profile = bare_profile();
  profile.reduction = ReductionMode::fused;
  const TestMachine machine(slow_memory(), profile);
  Builder builder("two here", allreduce_contract(2));
  builder.combine(builder.output(0, 0, 1),
                  {builder.input(0, 0, 1), builder.tmp(0, 0, 1), builder.input(1, 0, 1)});
  // Three operands, two additions.
  expect_time(machine.run(builder.finish(), kBytes), 1e-6 + 2e6 / 5e9);
}

TEST(CostModel, AFirstOperandThatComesIsAddedToNothing) {
  Profile profile = bare_profile();
  profile.reduction = ReductionMode::fused;
  Topology topology = switch_machine(3, 10, 0);
  topology.nodes[0].reduce_gbps = 1;
  Builder builder("none here", allreduce_contract(3));
  builder.combine(builder.output(0, 0, 1), {builder.input(1, 0, 1), builder.input(2, 0, 1)});
  const RunReport report = TestMachine(topology, profile).run(builder.finish(), kBytes);
  // Two operands, one addition: 1 MB at 1 GB/s.
  expect_time(report, 1e6 / 1e9);
  EXPECT_DOUBLE_EQ(bytes_of(report, "gpu0 reduction"), 1e6);
}

TEST(CostModel, ASeparateReductionFollowsTheTransfer) {
  Profile profile = bare_profile();
  profile.reduction = ReductionMode::separate;
  profile.reduce_overhead_s = 4e-6;
  const TestMachine machine(slow_memory(), profile);
  // 1 us + 1 MB / 10 GB/s, then 4 us + 1 MB / 5 GB/s.
  expect_time(machine.run(remote_combine(), kBytes), 1e-6 + 1e6 / 10e9 + 4e-6 + 1e6 / 5e9);
  expect_time(machine.run(local_combine(), kBytes), 4e-6 + 1e6 / 5e9);
  expect_time(machine.run(copy(0, 1), kBytes), 1e-6 + 1e6 / 10e9);
  expect_time(machine.run(remote_combine(), 0), 1e-6 + 4e-6);
}

/// How much longer a GPU with `links` links of `link_gbps` takes when what came over all of them at
/// once is added afterwards.
double lengthening(int links, double link_gbps, double reduce_gbps) {
  Topology topology = machine_of_gpus(links + 1);
  for (int i = 1; i <= links; ++i) topology.links.push_back(gpu_link(0, i, link_gbps, 0));
  topology.nodes[0].reduce_gbps = reduce_gbps;
  Profile profile = bare_profile();
  const double free_s = TestMachine(topology, profile).run(combine_all(links + 1), kBytes).time_s;
  profile.reduction = ReductionMode::separate;
  return TestMachine(topology, profile).run(combine_all(links + 1), kBytes).time_s / free_s - 1;
}

TEST(CostModel, ReducingAfterwardsCostsAsMuchAsMemoryMoves) {
  // c += a reads two and writes one byte for each of a: a third of the memory bandwidth that copies
  // reach. P100: 500 GB/s (Tartan), so 165; four NVLinks bring 4 x 18.5 = 74 GB/s, and adding what
  // they bring takes 74 / 165 = 45 % longer. V100: 750 GB/s, so 250; six NVLinks bring
  // 6 x 24 = 144 GB/s: 144 / 250 = 58 %.
  EXPECT_NEAR(lengthening(4, 18.5, 165), 74.0 / 165, 1e-9);
  EXPECT_NEAR(lengthening(6, 24, 250), 144.0 / 250, 1e-9);
}

TEST(CostModel, ACombineAtASourceFetchesTheOthersAndPassesOnTheResult) {
  // r0 <- r0 + r1 + r2 at r1, on a switch: r0 and r2 go to r1, which sends the sum to r0 meanwhile.
  // Two operands share r1's link: 2 x 1 MB at 10 GB/s; the result has r0's inward link alone.
  const RunReport report = TestMachine(switch_machine(3, 10, 1e-6)).run(combine_all(3, 1), kBytes);
  // The way to r1 and the way from it are 2 us each.
  expect_time(report, 4e-6 + 2e6 / 10e9);
  EXPECT_EQ(report.transfers, 3);
  EXPECT_DOUBLE_EQ(bytes_of(report, "switch->gpu1 nvlink2"), 2e6);
  EXPECT_DOUBLE_EQ(bytes_of(report, "gpu1->switch nvlink2"), 1e6);
  EXPECT_DOUBLE_EQ(bytes_of(report, "switch->gpu0 nvlink2"), 1e6);
}

TEST(CostModel, ACombineAtASourceReducesAndReadsThere) {
  // r0 <- r0 + r1 at r1; both directions of the link at 10 GB/s are used at once, each 1 us long.
  Profile profile = with_memory();
  const TestMachine copies(slow_memory(), profile);
  const RunReport report = copies.run(combine_all(2, 1), kBytes);
  expect_time(report, 2e-6 + 2e6 / 8e9);
  EXPECT_DOUBLE_EQ(bytes_of(report, "gpu0 memory"), 2e6);  // its input read, the result written
  EXPECT_DOUBLE_EQ(bytes_of(report, "gpu1 memory"), 1e6);  // its own input read

  profile = bare_profile();
  profile.reduction = ReductionMode::fused;
  const RunReport fused = TestMachine(slow_memory(), profile).run(combine_all(2, 1), kBytes);
  expect_time(fused, 2e-6 + 1e6 / 5e9);
  EXPECT_DOUBLE_EQ(bytes_of(fused, "gpu1 reduction"), 1e6);

  // Separately: r0's operand arrives; then r1 adds and writes to r0, 5 GB/s being slower than the
  // link, after its launch of 4 us and the link's 1 us.
  profile.reduction = ReductionMode::separate;
  profile.reduce_overhead_s = 4e-6;
  const RunReport separate = TestMachine(slow_memory(), profile).run(combine_all(2, 1), kBytes);
  expect_time(separate, 1e-6 + 1e6 / 10e9 + 4e-6 + 1e-6 + 1e6 / 5e9);
  EXPECT_EQ(separate.transfers, 2);
}

TEST(CostModel, ACombineOfLocalOperandsMayBeSentElsewhere) {
  // r0.out <- r1.in + r1.tmp at r1: one transfer, one addition.
  Builder builder("push", allreduce_contract(2));
  builder.combine(builder.output(0, 0, 1), {builder.input(1, 0, 1), builder.tmp(1, 0, 1)},
                  {.at = 1});
  const Program program = builder.finish();
  Profile profile = bare_profile();
  profile.reduction = ReductionMode::fused;
  const RunReport fused = TestMachine(slow_memory(), profile).run(program, kBytes);
  expect_time(fused, 1e-6 + 1e6 / 5e9);
  EXPECT_EQ(fused.transfers, 1);
  profile.reduction = ReductionMode::separate;
  expect_time(TestMachine(slow_memory(), profile).run(program, kBytes), 1e-6 + 1e6 / 5e9);
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
