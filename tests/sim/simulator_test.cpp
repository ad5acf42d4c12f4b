// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "ir/text.h"
#include "tests/error_of.h"
#include "tests/limited_memory.h"
#include "tests/sim/machine.h"
#include "topologies/load.h"

namespace espalier {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

void expect_time(const RunReport& report, double wanted_s) {
  EXPECT_NEAR(report.time_s, wanted_s, 1e-9 * wanted_s);
}

/// A million ops need some 40 bytes each to be simulated.
[[noreturn]] void simulate_without_memory() {
  Program program = ring_allreduce(2);
  const Op op = program.ops.front();
  program.ops.assign(1 << 20, op);
  const TestMachine machine(ring_machine(2, 10, 0));
  limit_memory(std::size_t{1} << 20);
  end_with_error_of([&] { machine.run(program, 64); });
}

TEST(Simulator, NoMemoryIsNotPossibleHere) {
  if (!kCanLimitMemory) GTEST_SKIP() << "with a sanitizer, addresses can't be limited";
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(simulate_without_memory(), testing::ExitedWithCode(3),
              "error: there is not enough memory to simulate ");
}

TEST(Simulator, ShortRunsAreAsExactAsLongOnes) {
  // 64 bytes on links of 1e6 GB/s without latency: 14 steps of 8 bytes, 1.12e-13 s; on slow links a
  // day.
  for (const double gbps : {1e6, 1e3, 1.0, 1e-3, 1e-12}) {
    SCOPED_TRACE(gbps);
    const double wanted_s = 14 * 8 / (gbps * 1e9);
    const double got_s = TestMachine(ring_machine(8, gbps, 0)).run(ring_allreduce(8), 64).time_s;
    EXPECT_NEAR(got_s / wanted_s, 1, 1e-11);
  }
}

TEST(Simulator, RunsFarShorterThanExpectedAreExact) {
  // A slow link and a costly start-up that nothing uses.
  Topology topology = ring_machine(3, 50, 0);
  topology.links[2].gbps = 1e-6;
  Profile profile = bare_profile();
  profile.local_overhead_s = 1e-3;
  Builder builder("chain", allreduce_contract(3));
  builder.copy(builder.tmp(1, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.tmp(2, 0, 1), builder.tmp(1, 0, 1));
  const double time_s = TestMachine(topology, profile).run(builder.finish(), 7).time_s;
  EXPECT_NEAR(time_s / (2 * 7 / 50e9), 1, 1e-11);
}

TEST(Simulator, RunsFarLongerThanExpectedAreExactAndReproducible) {
  // A chain: no rank's lane says that the message passes 300 ranks one after the other.
  constexpr int kRanks = 300;
  Builder builder("chain", allreduce_contract(kRanks));
  builder.copy(builder.tmp(1, 0, 1), builder.input(0, 0, 1));
  for (int rank = 1; rank + 1 < kRanks; ++rank) {
    builder.copy(builder.tmp(rank + 1, 0, 1), builder.tmp(rank, 0, 1));
  }
  const Program program = builder.finish();
  const TestMachine machine(ring_machine(kRanks, 10, 1e-6));
  const double first_s = machine.run(program, 1000).time_s;
  EXPECT_NEAR(first_s / ((kRanks - 1) * (1e-6 + 1000 / 10e9)), 1, 1e-11);
  for (int i = 0; i < 50; ++i) {
    TestMachine(ring_machine(3, 10, 1e-6)).run(ring_allreduce(3), 1000 * i);
    ASSERT_EQ(machine.run(program, 1000).time_s, first_s);
  }
}

TEST(Simulator, SimGridStaysInOneThread) {
  // SimGrid would leave a program of another thread as it is, as if it were stuck.
  const TestMachine machine(ring_machine(4, 25, 1e-6));
  const Program program = ring_allreduce(4);
  RunOptions options;
  options.size_bytes = 4 * kMiB;
  options.engine = SimEngine::simgrid;
  const RunReport here = Simulator().run(program, machine.target(), options);
  RunReport there;
  std::string refusal;
  std::thread([&] {
    options.engine = SimEngine::automatic;
    there = Simulator().run(program, machine.target(), options);
    options.engine = SimEngine::simgrid;
    refusal = error_of([&] { Simulator().run(program, machine.target(), options); },
                       ErrorKind::unsupported);
  }).join();
  EXPECT_EQ(here.simulated->engine, "simgrid");
  EXPECT_EQ(there.simulated->engine, "classes");
  expect_time(there, here.time_s);
  EXPECT_THAT(refusal, testing::HasSubstr("in the thread of this process that used it first"));
}

TEST(Simulator, RingAllreduceTakes2NMinus1Steps) {
  for (const int n : {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}) {
    SCOPED_TRACE(n);
    const TestMachine machine(ring_machine(n, 25, 1e-6));
    const RunReport report = machine.run(ring_allreduce(n), 3 * kMiB);
    // Every step moves a part of M/n from each rank to the next: M/n / 25e9 + 1 us.
    const double step_s = 3.0 * kMiB / n / 25e9 + 1e-6;
    expect_time(report, 2 * (n - 1) * step_s);
    EXPECT_EQ(report.transfers, 2 * n * (n - 1));
    EXPECT_EQ(report.message_bytes, 3 * kMiB);
  }
}

TEST(Simulator, SmallMessagesAreCountedInFractionsOfBytes) {
  const TestMachine machine(ring_machine(7, 25, 1e-6));
  // 10 bytes in 7 parts: 12 steps of 1 us + 10/7 / 25e9.
  expect_time(machine.run(ring_allreduce(7), 10), 12 * (1e-6 + 10.0 / 7 / 25e9));
}

TEST(Simulator, ZeroBytesStillPayLatency) {
  const TestMachine machine(ring_machine(8, 25, 1e-6));
  const RunReport report = machine.run(ring_allreduce(8), 0);
  expect_time(report, 14e-6);
  EXPECT_TRUE(report.simulated->links.empty());
}

TEST(Simulator, ACallCostsSomethingBeforeAnythingMoves) {
  Profile profile = bare_profile();
  profile.call_overhead_s = 8e-6;
  const TestMachine machine(ring_machine(8, 25, 1e-6), profile);
  const RunReport report = machine.run(ring_allreduce(8), 0, true);
  expect_time(report, 8e-6 + 14e-6);
  EXPECT_DOUBLE_EQ(report.timeline.front().start_s, 8e-6);
  EXPECT_DOUBLE_EQ(report.simulated->critical_path.front().start_s, 8e-6);
  EXPECT_DOUBLE_EQ(report.simulated->critical_path.back().end_s, report.time_s);

  RunOptions options;
  options.is_call = false;
  EXPECT_DOUBLE_EQ(Simulator().run(ring_allreduce(8), machine.target(), options).time_s, 14e-6);
  // A limit is for all of it: 22 us are within 23, and not within 21.
  options.is_call = true;
  options.limits = SimLimits{.time_s = 23e-6};
  EXPECT_EQ(Simulator().run(ring_allreduce(8), machine.target(), options).simulated->end,
            SimEnd::finished);
  options.limits->time_s = 21e-6;
  EXPECT_EQ(Simulator().run(ring_allreduce(8), machine.target(), options).simulated->end,
            SimEnd::too_slow);
}

/// One copy from gpu0 to gpu1 by either, 1 us, where gpu1's call begins 5 us after gpu0's.
double time_of_late_s(int by, std::vector<double> starts_s) {
  const TestMachine machine(ring_machine(2, 25, 1e-6), bare_profile());
  Builder builder("copy", {Collective::broadcast, 2, 0, 1});
  builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1), {.at = by});
  RunOptions options;
  options.starts_s = std::move(starts_s);
  return Simulator().run(builder.finish(), machine.target(), options).time_s;
}

TEST(Simulator, ACallIsNotOverBeforeItHasBegunEverywhere) {
  // gpu1 fetches it when it has begun; what gpu0 has stored there before, gpu1 takes then.
  EXPECT_NEAR(time_of_late_s(1, {0, 5e-6}), 6e-6, 1e-15);
  EXPECT_NEAR(time_of_late_s(0, {0, 5e-6}), 5e-6, 1e-15);
  // Nobody reads what a GPU has before its call has begun: kernels before it may still write it.
  EXPECT_NEAR(time_of_late_s(1, {5e-6, 0}), 6e-6, 1e-15);
  EXPECT_NEAR(time_of_late_s(0, {5e-6, 0}), 6e-6, 1e-15);
  EXPECT_NEAR(time_of_late_s(0, {}), 1e-6, 1e-15);
}

TEST(Simulator, OneRankCopiesLocallyInNoTime) {
  const TestMachine machine(machine_of_gpus(1));
  Builder builder("copy", allreduce_contract(1));
  builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1));
  const RunReport report = machine.run(builder.finish(), kMiB);
  EXPECT_EQ(report.time_s, 0);
  EXPECT_EQ(report.transfers, 0);
  EXPECT_EQ(report.simulated->critical_path.size(), 1u);
}

TEST(Simulator, AnEmptyProgramTakesNoTime) {
  const TestMachine machine(machine_of_gpus(1));
  const RunReport report = machine.run(Builder("none", allreduce_contract(1)).finish(), kMiB);
  EXPECT_EQ(report.time_s, 0);
  EXPECT_TRUE(report.simulated->critical_path.empty());
}

TEST(Simulator, LongChainsOfFreeOpsNeedNoStack) {
  const TestMachine machine(machine_of_gpus(1));
  constexpr int kOps = 300'000;
  Builder builder("chain", allreduce_contract(1));
  for (int i = 0; i < kOps; ++i) {
    builder.copy(builder.tmp(0, (i + 1) % 2, 1),
                 i == 0 ? builder.input(0, 0, 1) : builder.tmp(0, i % 2, 1));
  }
  EXPECT_EQ(machine.run(builder.finish(), kMiB).time_s, 0);
}

/// Two copies r0 -> r1 of half the message each, on lanes `a` and `b` of r0.
Program two_copies(int a, int b) {
  Builder builder("two", allreduce_contract(2, 2));
  builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1), {.lane = a});
  builder.copy(builder.output(1, 1, 1), builder.input(0, 1, 1), {.lane = b});
  return builder.finish();
}

TEST(Simulator, TwoLanesShareALinkOneLaneTakesTurns) {
  const TestMachine machine(ring_machine(2, 10, 1e-6));
  const double bytes_s = 1e6 / 10e9;
  // At the same time, each at half speed, or in turn: the second does not wait until the first is
  // there.
  expect_time(machine.run(two_copies(0, 1), 1'000'000), 1e-6 + bytes_s);
  expect_time(machine.run(two_copies(0, 0), 1'000'000), 1e-6 + bytes_s);
}

/// `bare_profile` with a start-up of 5 us.
Profile with_startup() {
  Profile profile = bare_profile();
  profile.links["nvlink2"].overhead_s = 5e-6;
  return profile;
}

TEST(Simulator, StartUpHoldsALaneAndLatencyDoesNot) {
  const TestMachine machine(ring_machine(2, 10, 100e-6), with_startup());
  // Two starts and all the bytes one after the other; then the last byte's way.
  expect_time(machine.run(two_copies(0, 0), 1'000'000), 2 * 5e-6 + 1e6 / 10e9 + 100e-6);
}

TEST(Simulator, AResultIsSeenElsewhereAfterItsWay) {
  const TestMachine machine(ring_machine(3, 10, 100e-6));
  Builder builder("relay", allreduce_contract(3));
  builder.copy(builder.tmp(1, 0, 1), builder.input(0, 0, 1));     // 0: r0 puts
  builder.copy(builder.output(2, 0, 1), builder.tmp(1, 0, 1));    // 1: r1 has to see it
  builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1));  // 2: r0 goes on
  const RunReport report = machine.run(builder.finish(), 1'000'000, true);
  expect_time(report, 2 * (1e6 / 10e9 + 100e-6));
  EXPECT_NEAR(report.timeline[0].end_s, 1e-4, 1e-13);
  EXPECT_NEAR(report.timeline[0].landing_s, 1e-4, 1e-13);
  EXPECT_NEAR(report.timeline[1].start_s, 2e-4, 1e-13);
  EXPECT_NEAR(report.timeline[2].start_s, 1e-4, 1e-13);
}

TEST(Simulator, APutMayBeFollowedByAWriteToItsSourceAndNotByAReadOfItsResult) {
  const TestMachine machine(ring_machine(2, 10, 100e-6));
  Builder builder("reuse", allreduce_contract(2, 2));
  builder.copy(builder.tmp(1, 0, 1), builder.tmp(0, 0, 1));                 // 0: r0 puts
  builder.copy(builder.tmp(0, 0, 1), builder.input(0, 0, 1), {.lane = 1});  // 1: overwrites
  builder.copy(builder.output(0, 0, 1), builder.tmp(1, 0, 1), {.lane = 2, .at = 0});  // 2: reads
  const RunReport report = machine.run(builder.finish(), 2'000'000, true);
  EXPECT_NEAR(report.timeline[1].start_s, 1e-4, 1e-13);
  EXPECT_NEAR(report.timeline[2].start_s, 2e-4, 1e-13);
}

TEST(Simulator, WhatIsUnderWayIsAwaitedWhoeverTells) {
  // r0 puts its message to r1, 100 us away. A local op of r0 that follows at once lets r1 go on:
  // r1 still has to have the message before it passes it on.
  const TestMachine line(ring_machine(3, 10, 100e-6));
  const Program program = parse_program(
      "program told\ncollective broadcast root 0\nranks 3\nunits 1\n"
      "0: r1.out[0] <- r0.in[0]\n"
      "1: r0.out[0] <- r0.in[0] lane 1 after 0\n"
      "2: r2.out[0] <- r1.out[0] after 1\n",
      "told.esp");
  const RunReport report = line.run(program, 1'000'000);
  expect_time(report, 2 * (1e6 / 10e9 + 100e-6));
  EXPECT_EQ(report.simulated->critical_path.back().waited_for, "data of op 0");
}

TEST(Simulator, AQuickPutDoesNotWaitForASlowOne) {
  // r0 puts to r1 over 100 us and then to r2 over 1 us; r2 passes on what it has.
  Topology topology = machine_of_gpus(4);
  topology.links = {gpu_link(0, 1, 10, 100e-6), gpu_link(0, 2, 10, 1e-6), gpu_link(2, 3, 10, 1e-6)};
  const TestMachine machine(std::move(topology));
  Builder builder("fan", allreduce_contract(4));
  builder.copy(builder.tmp(1, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.tmp(2, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.tmp(3, 0, 1), builder.tmp(2, 0, 1));
  const RunReport report = machine.run(builder.finish(), 1'000'000, true);
  EXPECT_NEAR(report.timeline[2].start_s, 2 * 1e6 / 10e9 + 1e-6, 1e-13);
}

/// r1 fetches two halves of r0's message in turn.
Program two_gets() {
  Builder builder("gets", allreduce_contract(2, 2));
  builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1), {.at = 1});
  builder.copy(builder.output(1, 1, 1), builder.input(0, 1, 1), {.at = 1});
  return builder.finish();
}

TEST(Simulator, AGetWaitsForItsBytesUnlessTheyAreSent) {
  Profile profile = with_startup();
  // Both ways are waited for.
  expect_time(TestMachine(ring_machine(2, 10, 100e-6), profile).run(two_gets(), 1'000'000),
              2 * (5e-6 + 100e-6) + 1e6 / 10e9);
  profile.gets_wait = false;
  expect_time(TestMachine(ring_machine(2, 10, 100e-6), profile).run(two_gets(), 1'000'000),
              2 * 5e-6 + 1e6 / 10e9 + 100e-6);
}

/// r0 -> r1 and r1 -> r0, the whole message each.
Program exchange() {
  Builder builder("exchange", allreduce_contract(2));
  builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.output(0, 0, 1), builder.input(1, 0, 1));
  return builder.finish();
}

TEST(Simulator, DirectionsOfAHalfDuplexLinkShareIt) {
  Topology topology = ring_machine(2, 10, 0);
  expect_time(TestMachine(topology).run(exchange(), 1'000'000), 1e6 / 10e9);
  topology.links[0].duplex = Duplex::half;
  const RunReport report = TestMachine(topology).run(exchange(), 1'000'000);
  expect_time(report, 2e6 / 10e9);
  ASSERT_EQ(report.simulated->links.size(), 1u);
  EXPECT_EQ(report.simulated->links[0].name, "gpu0<->gpu1 nvlink2");
  EXPECT_DOUBLE_EQ(report.simulated->links[0].bytes, 2e6);
}

TEST(Simulator, LinksOfOneMediumShareIt) {
  Topology topology = machine_of_gpus(4);
  topology.links = {gpu_link(0, 1, 10, 0), gpu_link(2, 3, 10, 0)};
  Builder builder("pairs", allreduce_contract(4));
  builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.output(3, 0, 1), builder.input(2, 0, 1));
  const Program pairs = builder.finish();
  expect_time(TestMachine(topology).run(pairs, 1'000'000), 1e6 / 10e9);
  for (Link& link : topology.links) {
    link.duplex = Duplex::shared;
    link.medium = "bus";
  }
  const RunReport report = TestMachine(topology).run(pairs, 1'000'000);
  expect_time(report, 2e6 / 10e9);
  ASSERT_EQ(report.simulated->links.size(), 1u);
  EXPECT_EQ(report.simulated->links[0].name, "bus nvlink2");
}

TEST(Simulator, AGatheringCombineIsBoundByTheLinkIntoItsDestination) {
  const TestMachine machine(switch_machine(4, 25, 0.5e-6));
  Builder builder("gather", allreduce_contract(4));
  builder.combine(builder.output(0, 0, 1), {builder.input(0, 0, 1), builder.input(1, 0, 1),
                                            builder.input(2, 0, 1), builder.input(3, 0, 1)});
  const RunReport report = machine.run(builder.finish(), 1'000'000);
  // Three flows into gpu0 at 25/3 GB/s each, after two hops of 0.5 us.
  expect_time(report, 1e-6 + 3e6 / 25e9);
  EXPECT_EQ(report.transfers, 3);
  ASSERT_EQ(report.simulated->links.size(), 4u);
  EXPECT_EQ(report.simulated->links[0].name, "switch->gpu0 nvlink2");
  EXPECT_NEAR(report.simulated->links[0].utilization, 120.0 / 121, 1e-9);
  EXPECT_NEAR(report.simulated->links[1].utilization, 40.0 / 121, 1e-9);
}

TEST(Simulator, ACombineAtASourceReadsAndWritesItsDestination) {
  const TestMachine machine(ring_machine(2, 10, 1e-6));
  Builder builder("push", allreduce_contract(2));
  builder.copy(builder.output(1, 0, 1), builder.input(1, 0, 1));
  builder.combine(builder.output(1, 0, 1), {builder.output(1, 0, 1), builder.input(0, 0, 1)},
                  {.at = 0});
  const RunReport report = machine.run(builder.finish(), 1'000'000);
  expect_time(report, 2e-6 + 1e6 / 10e9);  // there and back, both directions at once
  EXPECT_EQ(report.transfers, 2);
  ASSERT_EQ(report.simulated->links.size(), 2u);
  EXPECT_EQ(report.simulated->links[0].name, "gpu0->gpu1 nvlink2");
  EXPECT_EQ(report.simulated->links[1].name, "gpu1->gpu0 nvlink2");
}

TEST(Simulator, AViaGoesThroughTheNamedNode) {
  const TestMachine machine(ring_machine(3, 10, 1e-6));
  Builder builder("detour", allreduce_contract(3));
  builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1), {.via = "gpu2"});
  const RunReport report = machine.run(builder.finish(), 1'000'000);
  expect_time(report, 2e-6 + 1e6 / 10e9);
  ASSERT_EQ(report.simulated->links.size(), 2u);
  EXPECT_EQ(report.simulated->links[0].name, "gpu0->gpu2 nvlink2");
  EXPECT_EQ(report.simulated->links[1].name, "gpu2->gpu1 nvlink2");
}

TEST(Simulator, ComputeOpsTakeTheirDuration) {
  const TestMachine machine(ring_machine(2, 10, 1e-6));
  Builder builder("step", allreduce_contract(2));
  const OpId work = builder.compute(0, 5e-3);
  const OpId send = builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1), {.lane = 1});
  builder.after(send, work);
  expect_time(machine.run(builder.finish(), 1'000'000), 5e-3 + 1e-6 + 1e6 / 10e9);
}

/// Adding up by a GPU begins with a launch, by a host it does not; both are as fast as they are.
TEST(Simulator, HostsAddWithoutLaunches) {
  Topology machine = load_topology("full:n=2,gbps=10,host_gbps=10");
  Profile profile = bare_profile();
  profile.reduction = ReductionMode::separate;
  profile.reduce_overhead_s = 5e-6;
  for (Node& node : machine.nodes) node.reduce_gbps = 4;
  Builder builder("add", allreduce_contract(2));
  const PlaceId host = builder.add_host();
  builder.copy(builder.tmp(host, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.tmp(host, 1, 1), builder.input(1, 0, 1));
  builder.combine(builder.tmp(host, 0, 1), {builder.tmp(host, 0, 1), builder.tmp(host, 1, 1)});
  const Program program = builder.finish();
  // 8 MB over 10 GB/s side by side, then 8 MB at 4 GB/s.
  const double moved_s = 8e6 / 10e9;
  const double added_s = 8e6 / 4e9;
  expect_time(TestMachine(machine, profile).run(program, 8'000'000), moved_s + added_s);
}

TEST(Simulator, ASlowerGpuComputesLonger) {
  Builder builder("step", allreduce_contract(2));
  builder.compute(0, 5e-3);
  builder.compute(1, 8e-3);
  const Program program = builder.finish();
  Topology machine = ring_machine(2, 10, 1e-6);
  expect_time(TestMachine(machine).run(program, 1'000'000), 8e-3);
  machine.nodes[0].speed = 0.5;  // 5 ms / 0.5 = 10 ms
  expect_time(TestMachine(machine).run(program, 1'000'000), 10e-3);
  machine.nodes[1].speed = 0.2;  // 8 ms / 0.2 = 40 ms
  expect_time(TestMachine(machine).run(program, 1'000'000), 40e-3);
}

TEST(Simulator, AnyGpuWaitsAlike) {
  Builder builder("call", allreduce_contract(2));
  builder.busy(OpKind::wait, 0, 5e-3);
  const Program program = builder.finish();
  Topology machine = ring_machine(2, 10, 1e-6);
  machine.nodes[0].speed = 0.5;
  expect_time(TestMachine(machine).run(program, 1'000'000), 5e-3);
}

TEST(Simulator, TimeScalesWithBandwidthAndLatency) {
  const Program program = ring_allreduce(8);
  const double time_s = TestMachine(ring_machine(8, 25, 1e-6)).run(program, kMiB).time_s;
  for (const double k : {2.0, 3.0, 10.0}) {
    const double faster_s =
        TestMachine(ring_machine(8, 25 * k, 1e-6 / k)).run(program, kMiB).time_s;
    EXPECT_NEAR(faster_s * k, time_s, 1e-9 * time_s) << k;
  }
}

TEST(Simulator, NoLinkCarriesMoreThanItCan) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const TestMachine machine(switch_machine(6, 25, 1e-7));
    Builder builder("random", allreduce_contract(6, 8));
    double bytes = 0;
    for (int i = 0; i < 60; ++i) {
      const int from = static_cast<int>(random() % 6);
      const int to = (from + 1 + static_cast<int>(random() % 5)) % 6;
      const std::int64_t begin = random() % 7;
      const std::int64_t length = 1 + random() % (8 - begin);
      builder.copy(builder.tmp(to, begin, length), builder.input(from, begin, length),
                   {.lane = static_cast<int>(random() % 3)});
      bytes += 8e6 * static_cast<double>(length) / 8;
    }
    const RunReport report = machine.run(builder.finish(), 8'000'000);
    double carried = 0;
    for (const LinkUse& link : report.simulated->links) {
      EXPECT_LE(link.utilization, 1 + 1e-9) << link.name;
      carried += link.bytes;
    }
    EXPECT_NEAR(carried, 2 * bytes, 1e-6 * bytes);  // two links each
  }
}

/// Everything a report says, to the last bit, wall time aside.
void expect_same(const RunReport& a, const RunReport& b) {
  EXPECT_EQ(a.time_s, b.time_s);
  ASSERT_EQ(a.simulated->links.size(), b.simulated->links.size());
  for (std::size_t i = 0; i < a.simulated->links.size(); ++i) {
    EXPECT_EQ(a.simulated->links[i].name, b.simulated->links[i].name);
    EXPECT_EQ(a.simulated->links[i].bytes, b.simulated->links[i].bytes);
    EXPECT_EQ(a.simulated->links[i].utilization, b.simulated->links[i].utilization);
  }
  ASSERT_EQ(a.simulated->critical_path.size(), b.simulated->critical_path.size());
  for (std::size_t i = 0; i < a.simulated->critical_path.size(); ++i) {
    EXPECT_EQ(a.simulated->critical_path[i].op, b.simulated->critical_path[i].op);
    EXPECT_EQ(a.simulated->critical_path[i].start_s, b.simulated->critical_path[i].start_s);
    EXPECT_EQ(a.simulated->critical_path[i].end_s, b.simulated->critical_path[i].end_s);
  }
  ASSERT_EQ(a.timeline.size(), b.timeline.size());
  for (std::size_t i = 0; i < a.timeline.size(); ++i) {
    EXPECT_EQ(a.timeline[i].start_s, b.timeline[i].start_s);
    EXPECT_EQ(a.timeline[i].end_s, b.timeline[i].end_s);
  }
}

TEST(Simulator, RepeatedRunsAreEqualToTheLastBit) {
  const TestMachine machine(ring_machine(7, 23.7, 1.3e-6));
  const Program program = ring_allreduce(7);
  const RunReport first = machine.run(program, 1'000'003, true);
  for (int i = 1; i <= 50; ++i) {
    TestMachine(ring_machine(5, 1, 1e-6)).run(ring_allreduce(5), 1'000'000 * i);
    expect_same(machine.run(program, 1'000'003, true), first);
  }
}

double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  double total = 0;
  double resident = 0;
  statm >> total >> resident;
  return resident * 4096 / kMiB;
}

TEST(Simulator, ManySimulationsDoNotGrowMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep freed memory";
#endif
  const TestMachine machine(ring_machine(8, 25, 1e-6));
  const Program program = ring_allreduce(8);
  for (int i = 0; i < 200; ++i) machine.run(program, kMiB);
  const double before = resident_mib();
  for (int i = 0; i < 1000; ++i) machine.run(program, kMiB);
  EXPECT_LT(resident_mib() - before, 4);
}

TEST(Simulator, RefusesAProgramWithoutAMachineOrARoute) {
  const Simulator simulator;
  EXPECT_EQ(simulator.name(), "sim");
  EXPECT_EQ(simulator.unsupported(exchange(), Target{}),
            "the simulator needs a machine to simulate");
  const TestMachine apart(machine_of_gpus(2));
  const auto reason = simulator.unsupported(exchange(), apart.target());
  ASSERT_TRUE(reason.has_value());
  EXPECT_THAT(*reason, testing::HasSubstr("gpu0"));
  const TestMachine joined(ring_machine(2, 10, 0));
  EXPECT_EQ(simulator.unsupported(exchange(), joined.target()), std::nullopt);
}

}  // namespace
}  // namespace espalier
