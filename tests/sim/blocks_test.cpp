// SPDX-License-Identifier: Apache-2.0
// What blocks, protocols, FIFOs and messages cost, one at a time. Messages of 1000 bytes a unit, so
// that on 10 GB/s a unit takes 0.1 us; latency 1 us a link.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/verify.h"
#include "run/blocks.h"
#include "tests/sim/machine.h"

namespace espalier {
namespace {

constexpr double kUs = 1e-6;

Profile block_profile(int blocks) {
  Profile profile = bare_profile();
  profile.blocks = blocks;
  profile.splits_lanes = true;
  profile.protocol.name = "simple";
  return profile;
}

/// Copies of one unit from rank 0 to rank 1, each on a lane of its own.
Program copies(int count, int lanes) {
  Builder builder("copies", allreduce_contract(2, count));
  for (int i = 0; i < count; ++i) {
    builder.copy(builder.tmp(1, i, 1), builder.input(0, i, 1), {.lane = i % lanes});
  }
  return builder.finish();
}

double time_us(const Program& program, const Profile& profile, double gbps = 10,
               std::int64_t unit_bytes = 1000) {
  const TestMachine machine(ring_machine(2, gbps, kUs), profile);
  return machine.run(program, program.contract.units * unit_bytes).time_s / kUs;
}

TEST(Blocks, AHopContainsTheLatencyOfItsRoute) {
  Profile profile = block_profile(1);
  profile.protocol.hop_s[LinkClass::gpu_fabric] = 3 * kUs;
  // Two ops in one block: 2 us of start-up and 0.1 us each, the last lands 1 us later.
  EXPECT_NEAR(time_us(copies(2, 1), profile), 2 * 2.1 + 1, 1e-9);
  // A wire of 1 us is all of a hop of half a microsecond.
  profile.protocol.hop_s[LinkClass::gpu_fabric] = 0.5 * kUs;
  EXPECT_NEAR(time_us(copies(2, 1), profile), 2 * 0.1 + 1, 1e-9);
}

TEST(Blocks, ABlockHasARateAndALaneSeveralBlocks) {
  Profile profile = block_profile(1);
  profile.protocol.block_gbps["other"] = 2;
  EXPECT_NEAR(time_us(copies(1, 1), profile), 0.5 + 1, 1e-9);
  profile.blocks = 3;  // one lane has them all: 6 GB/s
  EXPECT_NEAR(time_us(copies(1, 1), profile), 1 / 6.0 + 1, 1e-9);
  EXPECT_NEAR(time_us(copies(2, 2), profile), 0.5 + 1, 1e-9);  // one block each, the third idle
  profile.splits_lanes = false;
  EXPECT_NEAR(time_us(copies(1, 1), profile), 0.5 + 1, 1e-9);
  profile.splits_lanes = true;
  profile.blocks = 32;  // the link is the limit
  EXPECT_NEAR(time_us(copies(1, 1), profile), 0.1 + 1, 1e-9);
  profile.protocol.block_gbps["v100"] = 1;  // another model
  EXPECT_NEAR(time_us(copies(1, 1), profile), 0.1 + 1, 1e-9);
}

TEST(Blocks, OfAGpuSendAtALimitedRate) {
  Profile profile = block_profile(8);
  profile.protocol.gpu_gbps["other"] = 4;
  EXPECT_NEAR(time_us(copies(8, 8), profile), 8 * 0.25 + 1, 1e-9);
}

TEST(Blocks, BytesOnTheWireAreMoreThanData) {
  Profile profile = block_profile(1);
  profile.protocol.wire = 2;
  EXPECT_NEAR(time_us(copies(3, 1), profile), 3 * 0.2 + 1, 1e-9);
}

TEST(Blocks, SlicesCostAHopEach) {
  Profile profile = block_profile(1);
  profile.protocol.hop_s[LinkClass::gpu_fabric] = 3 * kUs;
  profile.protocol.slice_bytes = 4000;
  profile.protocol.min_slice_bytes = 500;
  profile.protocol.slices_per_op = 2;
  const auto expect = [&](std::int64_t bytes, int slices) {
    EXPECT_NEAR(time_us(copies(1, 1), profile, 10, bytes),
                slices * 3 + static_cast<double>(bytes) / 1e4, 1e-9)
        << bytes;
  };
  expect(400, 1);      // shorter than a slice has to be
  expect(1000, 2);     // two of 500
  expect(8000, 2);     // two of 4000
  expect(12'001, 4);   // no longer than 4000
  profile.blocks = 4;  // 3001 bytes for each of four
  expect(12'001, 2);
}

/// As over a network, whose NIC and proxy pass slices on while the block posts the next one.
TEST(Blocks, FurtherSlicesCostWhatHoldsTheBlock) {
  Profile profile = block_profile(1);
  profile.protocol.hop_s[LinkClass::gpu_fabric] = 3 * kUs;
  profile.protocol.hold_s[LinkClass::gpu_fabric] = 0.5 * kUs;
  profile.protocol.slice_bytes = 4000;
  EXPECT_NEAR(time_us(copies(1, 1), profile, 10, 4000), 3 + 0.4, 1e-9);
  EXPECT_NEAR(time_us(copies(1, 1), profile, 10, 16'000), 3 + 3 * 0.5 + 1.6, 1e-9);
  // Of slices that every op has, those of the first ops of a lane, as many as there are ranks, pay
  // all of the hop.
  profile.protocol.slices_per_op = 2;
  EXPECT_NEAR(time_us(copies(1, 1), profile, 10, 4000), 3 + 3 + 0.4, 1e-9);
  EXPECT_NEAR(time_us(copies(4, 1), profile, 10, 4000),
              2 * (0.5 + 3) + 2 * (0.5 + 0.5) + 4 * 0.4 + 2.5, 1e-9);
}

TEST(Blocks, AnOpTakesAMinimum) {
  Profile profile = block_profile(1);
  profile.protocol.min_op_s = 2 * kUs;  // 1 us of which is latency, which holds no block
  EXPECT_NEAR(time_us(copies(3, 1), profile), 3 * 1 + 1, 1e-9);
  EXPECT_NEAR(time_us(copies(1, 1), profile, 10, 50'000), 5 + 1, 1e-9);  // longer anyway
}

TEST(Blocks, AHopMayBeLongerByModel) {
  Profile profile = block_profile(1);
  profile.protocol.hop_s[LinkClass::gpu_fabric] = 3 * kUs;
  profile.protocol.hop_more_s["other"] = 0.5 * kUs;
  // Two ops in one block, as above, each held for half a microsecond more.
  EXPECT_NEAR(time_us(copies(2, 1), profile), 2 * 2.6 + 1, 1e-9);
  profile.protocol.hop_more_s = {{"v100", 0.5 * kUs}};  // another model
  EXPECT_NEAR(time_us(copies(2, 1), profile), 2 * 2.1 + 1, 1e-9);
}

TEST(Blocks, DriftApart) {
  Profile profile = block_profile(2);
  profile.protocol.hop_s[LinkClass::gpu_fabric] = 3 * kUs;
  profile.protocol.block_gbps["other"] = 8;
  const auto time = [&](int count, int lanes, std::int64_t bytes) {
    return time_us(copies(count, lanes), profile, 10, bytes);
  };
  // Two blocks of 8 GB/s share 10 GB/s, three ops of 100 000 bytes each: 2 us of start-up, 20 us.
  EXPECT_NEAR(time(6, 2, 100'000), 3 * (2 + 20) + 1, 1e-9);
  // From the third on starting up falls into the other one's transfer.
  profile.protocol.drift_ops = 2;
  EXPECT_NEAR(time(6, 2, 100'000), 2 * (2 + 20) + 20 + 1, 1e-9);
  EXPECT_NEAR(time(4, 2, 100'000), 2 * (2 + 20) + 1, 1e-9);
  // 4000 bytes pass a block in 0.5 us: what starting up leaves of an op.
  EXPECT_NEAR(time(6, 2, 4000), 2 * (2 + 0.8) + (2 + 0.5) + 1, 1e-9);
}

TEST(Blocks, MayHaveOneOpMoreThatStaysInTheGpu) {
  Profile profile = block_profile(1);
  profile.local_overhead_s = 1 * kUs;
  profile.protocol.block_gbps["other"] = 2;
  const TestMachine machine(ring_machine(2, 10, kUs), profile);
  RunOptions options;
  options.size_bytes = 4000;
  options.blocks.one_per_lane = true;
  options.blocks.ops_per_local = 2;
  // A block of 2 GB/s takes 0.5 us for a unit. For two of them it copies one more in the GPU.
  const double time_s = Simulator().run(copies(4, 1), machine.target(), options).time_s;
  EXPECT_NEAR(time_s / kUs, 4 * 0.5 + 2 * (1 + 0.5) + 1, 1e-9);
}

TEST(Blocks, LanesThatShareABlockRunOneOpAtATime) {
  Profile profile = block_profile(2);
  profile.protocol.hop_s[LinkClass::gpu_fabric] = 3 * kUs;
  // Six lanes on two blocks: three ops each; both blocks share 10 GB/s, so 2 + 0.2 us an op.
  EXPECT_NEAR(time_us(copies(6, 6), profile), 3 * 2.2 + 1, 1e-9);
  const TestMachine machine(ring_machine(2, 10, kUs), profile);
  RunOptions options;
  options.size_bytes = 6000;
  const auto merged = Simulator().on_blocks(copies(6, 6), machine.target(), options);
  ASSERT_TRUE(merged);
  EXPECT_EQ(moving_lanes(*merged), (std::vector<int>{2, 0}));
  EXPECT_NEAR(machine.run(*merged, 6000).time_s / kUs, 3 * 2.2 + 1, 1e-9);
  EXPECT_FALSE(Simulator().on_blocks(copies(6, 2), machine.target(), options));
}

TEST(Blocks, AreNotForLanesThatCompute) {
  // Two lanes that copy share the one block, as in the test above; what is computed runs beside
  // them.
  Builder builder("busy", allreduce_contract(2, 2));
  for (int lane = 0; lane < 2; ++lane) {
    builder.copy(builder.tmp(1, lane, 1), builder.input(0, lane, 1), {.lane = lane});
  }
  builder.compute(0, 5 * kUs, {.lane = 2});
  EXPECT_NEAR(time_us(builder.finish(), block_profile(1)), 5, 1e-9);
}

TEST(Blocks, ASharedBlockTakesWhatIsReadyFirst) {
  // Lane 0 of rank 1 passes on what comes late; lane 1 has its data from the start. In program
  // order the one block would wait for 5 units before it does anything.
  Builder builder("order", allreduce_contract(3, 8));
  for (int i = 0; i < 5; ++i) builder.copy(builder.tmp(1, i, 1), builder.input(0, i, 1));
  builder.copy(builder.tmp(2, 4, 1), builder.tmp(1, 4, 1), {.lane = 0});
  for (int i = 5; i < 8; ++i) {
    builder.copy(builder.tmp(2, i, 1), builder.input(1, i, 1), {.lane = 1});
  }
  const TestMachine machine(ring_machine(3, 10, kUs), block_profile(1));
  const Program program = builder.finish();
  // 0.5 us and 1 us of latency until the late unit is there; then 0.1 us and latency.
  EXPECT_NEAR(machine.run(program, 8000).time_s / kUs, 0.5 + 1 + 0.1 + 1, 1e-9);
  RunOptions options;
  options.size_bytes = 8000;
  const auto merged = Simulator().on_blocks(program, machine.target(), options);
  ASSERT_TRUE(merged);
  EXPECT_NEAR(machine.run(*merged, 8000).time_s / kUs, 0.5 + 1 + 0.1 + 1, 1e-9);
}

TEST(Blocks, TooManyLanesAreNamed) {
  const TestMachine machine(ring_machine(2, 10, kUs), block_profile(2));
  const auto problem = too_many_lanes(copies(6, 6), machine.target());
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->message, "r0 uses 6 lanes, and under profile bare a GPU has 2 blocks");
  EXPECT_FALSE(too_many_lanes(copies(6, 2), machine.target()));
}

TEST(Blocks, AreDealtOutByAllThatPassesThem) {
  // Lane 0 of rank 0 sends a unit, lane 1 adds up a unit of each of two peers: twice as much.
  Builder builder("sum", allreduce_contract(3, 1));
  builder.copy(builder.tmp(1, 0, 1), builder.input(0, 0, 1), {.lane = 0});
  builder.combine(builder.tmp(0, 0, 1), {builder.input(1, 0, 1), builder.input(2, 0, 1)},
                  {.lane = 1});
  Profile profile = block_profile(3);
  profile.protocol.block_gbps["other"] = 2;
  const TestMachine machine(ring_machine(3, 10, kUs), profile);
  // One block of 2 GB/s for 1000 bytes, two for 2000; and 1 us of latency.
  EXPECT_NEAR(machine.run(builder.finish(), 1000).time_s / kUs, 0.5 + 1, 1e-9);
}

/// Time beside latency for the first `readers` of four GPUs behind a switch to add up a unit of
/// each of the three others, `lockstep_bytes` of which they read in the same order. Further units
/// may be of the next two only.
double sum_of_three_us(int readers, double lockstep_bytes, int ops = 1, bool by_switch = true,
                       bool of_two_then = false) {
  Builder builder("sums", allreduce_contract(4, ops));
  for (int rank = 0; rank < readers; ++rank) {
    for (int unit = 0; unit < ops; ++unit) {
      std::vector<Slice> others;
      for (int peer = 0; peer < 4; ++peer) {
        const bool is_left_out = of_two_then && unit > 0 && peer == (rank + 3) % 4;
        if (peer != rank && !is_left_out) others.push_back(builder.input(peer, unit, 1));
      }
      builder.combine(builder.tmp(rank, unit, 1), others);
    }
  }
  Profile profile = block_profile(32);
  profile.protocol.lockstep_bytes = lockstep_bytes;
  profile.gets_wait = false;
  Topology machine = switch_machine(4, 10, kUs);
  if (!by_switch) {
    machine = machine_of_gpus(4);
    for (int a = 0; a < 4; ++a) {
      for (int b = a + 1; b < 4; ++b) machine.links.push_back(gpu_link(a, b, 10, 2 * kUs));
    }
  }
  return TestMachine(machine, profile).run(builder.finish(), 1000 * ops).time_s / kUs - 2;
}

TEST(Blocks, ThatReadAllPeersInOneOrderShareTheLinksOfOne) {
  // 3000 bytes come over a link of 10 GB/s in 0.3 us. In lockstep each of the three peers serves as
  // many readers as there are, three at most, at the rate of one.
  EXPECT_NEAR(sum_of_three_us(4, 0), 0.3, 1e-9);
  EXPECT_NEAR(sum_of_three_us(4, 1000), 3 * 0.3, 1e-9);
  EXPECT_NEAR(sum_of_three_us(4, 1e6), 3 * 0.3, 1e-9);
  EXPECT_NEAR(sum_of_three_us(4, 500), 0.3 + 2 * 0.15, 1e-9);
  EXPECT_NEAR(sum_of_three_us(2, 1000), 2 * 0.3, 1e-9);
  EXPECT_NEAR(sum_of_three_us(1, 1000), 0.3, 1e-9);  // nobody is in its way
  // Of two ops of a lane only the first 1500 bytes are read in lockstep.
  EXPECT_NEAR(sum_of_three_us(4, 1500, 2), 2 * 0.3 + 2 * 0.45, 1e-9);
  // The second op reads two peers, each of which then serves two readers.
  EXPECT_NEAR(sum_of_three_us(4, 2000, 2, true, true), 3 * 0.3 + 2 * 0.2, 1e-9);
  // Over links of their own.
  EXPECT_NEAR(sum_of_three_us(4, 1000, 1, false), 0.1, 1e-9);
}

// FIFOs of four steps of 1000 bytes.

Profile fifo_profile() {
  Profile profile = block_profile(4);
  profile.fifo_steps = 4;
  profile.protocol.step_bytes = 1000;
  return profile;
}

TEST(Fifo, ASenderWaitsUntilStepsHaveBeenRead) {
  // Rank 0 sends ten units, which rank 1 passes on to rank 2 over a link of a tenth of the speed:
  // the first four fill the FIFO, each other one waits for the one four before it to be read.
  Topology topology = ring_machine(3, 10, 0);
  topology.links[1].gbps = 1;
  Builder builder("chain", allreduce_contract(3, 10));
  for (int i = 0; i < 10; ++i) {
    builder.copy(builder.tmp(1, i, 1), builder.input(0, i, 1));
    builder.copy(builder.tmp(2, i, 1), builder.tmp(1, i, 1));
  }
  const Program program = builder.finish();
  const RunReport free = TestMachine(topology, block_profile(4)).run(program, 10'000, true);
  const RunReport held = TestMachine(topology, fifo_profile()).run(program, 10'000, true);
  EXPECT_NEAR(free.timeline[18].start_s / kUs, 9 * 0.1, 1e-9);
  EXPECT_NEAR(held.timeline[18].start_s / kUs, 0.1 + 6 * 1, 1e-9);
  EXPECT_NEAR(held.time_s / kUs, 0.1 + 10 * 1, 1e-9);
  EXPECT_NEAR(free.time_s, held.time_s, 1e-15);
}

/// Two peers' 1000 bytes and the block's own, 1 us of wire: at 5 GB/s a block that fetches them
/// takes 0.4 us. From FIFOs it only adds them up, and takes as long as for those of one peer.
TEST(Fifo, WhatPeersHaveSentIsNotMovedAgain) {
  Builder builder("sum", allreduce_contract(3, 1));
  builder.combine(builder.output(0, 0, 1),
                  {builder.input(1, 0, 1), builder.input(2, 0, 1), builder.input(0, 0, 1)});
  const Program program = builder.finish();
  const auto of = [&](Profile profile) {
    profile.blocks = 1;
    profile.protocol.block_gbps = {{"other", 5}};
    return TestMachine(ring_machine(3, 10, kUs), profile).run(program, 1000).time_s / kUs;
  };
  EXPECT_NEAR(of(block_profile(1)), 0.4 + 1, 1e-9);
  EXPECT_NEAR(of(fifo_profile()), 0.2 + 1, 1e-9);
}

TEST(Fifo, WhatNobodyReadsIsTakenOutAtOnce) {
  EXPECT_NEAR(time_us(copies(10, 1), fifo_profile()), 10 * 0.1 + 1, 1e-9);
}

TEST(Fifo, SendingMoreThanFitsBeforeReadingIsStuck) {
  // Both ranks send `count` units in one block before the same block reads what came.
  const auto exchange = [](int count) {
    Builder builder("exchange", allreduce_contract(2, count));
    for (int i = 0; i < count; ++i) {
      for (int rank = 0; rank < 2; ++rank) {
        builder.copy(builder.tmp(1 - rank, i, 1), builder.input(rank, i, 1));
      }
    }
    for (int i = 0; i < count; ++i) {
      for (int rank = 0; rank < 2; ++rank) {
        builder.combine(builder.output(rank, i, 1),
                        {builder.input(rank, i, 1), builder.tmp(rank, i, 1)});
      }
    }
    return builder.finish();
  };
  const TestMachine machine(ring_machine(2, 10, kUs), fifo_profile());
  ASSERT_TRUE(verify(exchange(5)).ok());
  EXPECT_GT(machine.run(exchange(4), 4000).time_s, 0);
  try {
    machine.run(exchange(5), 5000);
    FAIL() << "it is stuck";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics()[0].message, "the program is stuck: 12 of 20 ops never start");
    EXPECT_THAT(error.diagnostics()[1].message,
                testing::HasSubstr("waits for a free step of its FIFO to r1, where nobody has read "
                                   "what came before"));
  }
  EXPECT_GT(TestMachine(ring_machine(2, 10, kUs), block_profile(4)).run(exchange(5), 5000).time_s,
            0);
}

/// Hosts with so many GPUs behind one NIC, and 10 GB/s everywhere. GPU i of the second host is
/// number `gpus` + i.
Topology two_hosts(int gpus = 1) {
  Topology topology = machine_of_gpus(2 * gpus);
  topology.hosts = 2;
  for (int i = gpus; i < 2 * gpus; ++i) topology.nodes[static_cast<std::size_t>(i)].host = 1;
  const auto link = [&](NodeId a, NodeId b, LinkClass link_class) {
    Link made = gpu_link(a, b, 10, 0);
    made.link_class = link_class;
    made.kind = link_class == LinkClass::network ? "ib_edr" : "pcie3x16";
    topology.links.push_back(made);
  };
  for (const int host : {0, 1}) {
    Node nic;
    nic.name = "nic" + std::to_string(host);
    nic.kind = NodeKind::nic;
    nic.host = host;
    topology.nodes.push_back(nic);
    for (int i = 0; i < gpus; ++i) link(host * gpus + i, 2 * gpus + host, LinkClass::host);
  }
  link(2 * gpus, 2 * gpus + 1, LinkClass::network);
  return topology;
}

/// A message of 1000 bytes takes 0.1 us over the links.
double messages_us(const Program& program, const Profile& profile,
                   const Topology& machine = two_hosts()) {
  return TestMachine(machine, profile).run(program, program.contract.units * 1000).time_s / kUs;
}

Profile message_profile(double us) {
  Profile profile = block_profile(20);
  profile.message_s = us * kUs;
  return profile;
}

TEST(Messages, AProxyTakesThemOneAfterTheOther) {
  // Ten of them.
  EXPECT_NEAR(messages_us(copies(10, 10), message_profile(2)), 10 * 2, 1e-9);
  // While their bytes move.
  EXPECT_NEAR(messages_us(copies(10, 10), message_profile(0.05)), 10 * 0.1, 1e-9);
  EXPECT_NEAR(time_us(copies(10, 10), message_profile(2)), 10 * 0.1 + 1, 1e-9);  // no network
}

TEST(Messages, AProxyHasBothThoseThatItsGpuSendsAndThoseThatItReceives) {
  Builder builder("both", allreduce_contract(2, 10));
  for (int i = 0; i < 10; ++i) {
    for (const int rank : {0, 1}) {
      builder.copy(builder.tmp(1 - rank, i, 1), builder.input(rank, i, 1), {.lane = i});
    }
  }
  // Each of the two has ten of either.
  EXPECT_NEAR(messages_us(builder.finish(), message_profile(2)), 20 * 2, 1e-9);
}

TEST(Messages, OfOtherGpusBehindTheSameNicDoNotWait) {
  Builder builder("pairs", allreduce_contract(4, 10));
  for (int i = 0; i < 10; ++i) {
    for (const int rank : {0, 1}) {
      builder.copy(builder.tmp(rank + 2, i, 1), builder.input(rank, i, 1), {.lane = i});
    }
  }
  EXPECT_NEAR(messages_us(builder.finish(), message_profile(2), two_hosts(2)), 10 * 2, 1e-9);
}

TEST(Messages, AreLookedThroughWhereTheyAreSent) {
  Profile profile = message_profile(2);
  profile.protocol.checked_gbps = {{"other", 0.25}, {"amd", 0.125}};
  // 1000 bytes take 4 us, and the post 2.
  EXPECT_NEAR(messages_us(copies(10, 10), profile), 10 * (4 + 2), 1e-9);
  Topology amd = two_hosts();
  Node cpu;
  cpu.name = "cpu0";
  cpu.kind = NodeKind::cpu;
  cpu.model = "epyc-7742";
  amd.nodes.push_back(cpu);
  EXPECT_NEAR(messages_us(copies(10, 10), profile, amd), 10 * (8 + 2), 1e-9);
  profile.message_more_s = {{"amd", 1 * kUs}};
  EXPECT_NEAR(messages_us(copies(10, 10), profile, amd), 10 * (8 + 2 + 1), 1e-9);
  EXPECT_NEAR(messages_us(copies(10, 10), profile), 10 * (4 + 2), 1e-9);
  profile.message_s = 0;
  EXPECT_NEAR(messages_us(copies(10, 10), profile), 10 * 4, 1e-9);
}

TEST(Messages, AreContainedInAHop) {
  Profile profile = message_profile(2);
  profile.protocol.hop_s[LinkClass::network] = 5 * kUs;
  profile.protocol.hold_s[LinkClass::network] = 2 * kUs;
  // One lane: 2 us hold the block, 3 are latency.
  EXPECT_NEAR(messages_us(copies(10, 1), profile), 10 * (2 + 0.1) + 3, 1e-9);
}

}  // namespace
}  // namespace espalier
