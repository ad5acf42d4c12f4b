// SPDX-License-Identifier: Apache-2.0
// Simulations that are abandoned because of what they take at least. That none is abandoned that
// would have ended in time is tested on every algorithm: tests/conformance/engines_test.cpp.
#include "sim/least_time.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "ir/chunk.h"
#include "tests/sim/machine.h"

namespace espalier {
namespace {

constexpr std::int64_t kMessage = std::int64_t{1} << 20;

/// As a search does that knows something faster.
RunReport run_within(const TestMachine& machine, const Program& program, const SimLimits& limits) {
  RunOptions options;
  options.size_bytes = kMessage;
  options.limits = limits;
  return Simulator().run(program, machine.target(), options);
}

/// With part of the time that it takes.
RunReport run_within(const TestMachine& machine, const Program& program, double of_time) {
  return run_within(
      machine, program,
      SimLimits{.time_s = of_time * run_within(machine, program, SimLimits{}).time_s});
}

std::int64_t whole_work(const TestMachine& machine, const Program& program) {
  return run_within(machine, program, SimLimits{}).simulated->work;
}

/// Transfers begin 2 us late; else nothing but wires counts.
Profile starting_up() {
  Profile profile = bare_profile();
  profile.links["nvlink2"].overhead_s = 2e-6;
  return profile;
}

/// Every step waits for the one before; start-up and bytes of all are known beforehand.
TEST(LeastTime, AbandonsAChainOfOpsThatIsTooLong) {
  const TestMachine machine(ring_machine(8, 25, 1e-6), starting_up());
  const Program ring = ring_allreduce(8);
  const RunReport abandoned = run_within(machine, ring, 0.8);
  EXPECT_EQ(abandoned.simulated->end, SimEnd::too_slow);
  EXPECT_LT(abandoned.simulated->work, whole_work(machine, ring) / 10);
  const RunReport in_time = run_within(machine, ring, 1 + 1e-9);
  EXPECT_EQ(in_time.simulated->end, SimEnd::finished);
  EXPECT_EQ(in_time.time_s, run_within(machine, ring, SimLimits{}).time_s);
}

/// Seven ranks send to the eighth at the same time, sixteen pieces each: no op and no lane is slow,
/// but all share one link.
TEST(LeastTime, AbandonsWhatALinkCannotCarryInTime) {
  constexpr int kRanks = 8;
  constexpr int kPieces = 16;
  const TestMachine machine(switch_machine(kRanks, 25, 0));
  Builder builder("to_one", allreduce_contract(kRanks, kRanks * kPieces));
  for (int rank = 1; rank < kRanks; ++rank) {
    for (int piece = 0; piece < kPieces; ++piece) {
      const int unit = rank * kPieces + piece;
      builder.copy(builder.output(0, unit, 1), builder.input(rank, unit, 1));
    }
  }
  const Program program = builder.finish();
  const RunReport abandoned = run_within(machine, program, 0.99);
  EXPECT_EQ(abandoned.simulated->end, SimEnd::too_slow);
  EXPECT_LT(abandoned.simulated->work, whole_work(machine, program) / 10);
  EXPECT_EQ(run_within(machine, program, 1 + 1e-9).simulated->end, SimEnd::finished);
}

/// Sixteen lanes of two blocks, each of which sends a little to a peer of its own: 8 * 4 start-ups
/// one after the other in a block, of 2 us each, though a lane has four.
Program short_sends() {
  Builder builder("short", allreduce_contract(17, 64));
  for (int unit = 0; unit < 64; ++unit) {
    const int peer = unit % 16;
    builder.copy(builder.output(1 + peer, unit, 1), builder.input(0, unit, 1), {.lane = peer});
  }
  return builder.finish();
}

Profile two_blocks() {
  Profile profile = starting_up();
  profile.blocks = 2;
  return profile;
}

TEST(LeastTime, AbandonsWhatBlocksCannotDoInTime) {
  const TestMachine machine(switch_machine(17, 1000, 0), two_blocks());
  const Program program = short_sends();
  const RunReport abandoned = run_within(machine, program, 0.9);
  EXPECT_EQ(abandoned.simulated->end, SimEnd::too_slow);
  EXPECT_LT(abandoned.simulated->work, whole_work(machine, program) / 10);
  EXPECT_EQ(run_within(machine, program, 1 + 1e-9).simulated->end, SimEnd::finished);
}

/// Which lanes are alike, nobody asks: that takes half of what it takes to simulate them.
TEST(LeastTime, AbandonsBeforeLanesAreTold) {
  const TestMachine machine(switch_machine(17, 1000, 0), two_blocks());
  const Program program = short_sends();
  RunOptions options;
  options.size_bytes = kMessage;
  options.only_times = true;
  const RunReport whole = Simulator().run(program, machine.target(), options);
  EXPECT_EQ(whole.simulated->alike_lanes, AlikeLanes::one_simulated);
  options.limits = SimLimits{.time_s = 0.9 * whole.time_s};
  const RunReport abandoned = Simulator().run(program, machine.target(), options);
  EXPECT_EQ(abandoned.simulated->end, SimEnd::too_slow);
  const auto ops = static_cast<std::int64_t>(program.ops.size());
  EXPECT_LT(abandoned.simulated->work, ops * kWorkPerOp / 4);
  EXPECT_EQ(abandoned.simulated->alike_lanes, AlikeLanes::not_looked_for);
}

LeastTimes least_times(const TestMachine& machine, const Program& program,
                       double enough_s = std::numeric_limits<double>::infinity()) {
  RunOptions options;
  options.size_bytes = kMessage;
  return Simulator().least_times(program, machine.target(), options, enough_s);
}

/// A ring of eight ranks: 14 steps of 2^17 bytes at 25 GB/s on every lane, one start-up of 2 us
/// before each, seven of them of ranks that fetch, for 1 us more; with pieces of a quarter, four.
TEST(LeastOfPieces, ALaneCarriesOutOnePieceAfterTheOther) {
  const TestMachine machine(ring_machine(8, 25, 1e-6), starting_up());
  const Program ring = ring_allreduce(8);
  const LeastTimes least = least_times(machine, ring);
  const double flowing_s = 14 * 131072 / 25e9;
  const double start_ups_s = 14 * 2e-6 + 7 * 1e-6;
  EXPECT_NEAR(least.links_s, flowing_s, 1e-5 * flowing_s);
  EXPECT_NEAR(least.of_chunks(0), flowing_s + start_ups_s, 1e-9);
  EXPECT_NEAR(least.of_chunks(131072), flowing_s + start_ups_s, 1e-9);
  EXPECT_NEAR(least.of_chunks(32768), flowing_s + 4 * start_ups_s, 1e-9);
  EXPECT_LE(least.of_chunks(0), run_within(machine, ring, SimLimits{}).time_s);
}

/// 64 sends of 2^14 bytes at 1000 GB/s are shared by two blocks, or 128 of half as much.
TEST(LeastOfPieces, BlocksDoNoLessThanTheirMean) {
  const TestMachine machine(switch_machine(17, 1000, 0), two_blocks());
  const Program program = short_sends();
  const LeastTimes least = least_times(machine, program);
  const double flowing_s = 64 * 16384 / 1e12;
  EXPECT_NEAR(least.of_chunks(0), (64 * 2e-6 + flowing_s) / 2, 1e-9);
  EXPECT_NEAR(least.of_chunks(8192), (128 * 2e-6 + flowing_s) / 2, 1e-9);
  EXPECT_LE(least.of_chunks(0), run_within(machine, program, SimLimits{}).time_s);
}

/// It is no more than the simulation of the program that is cut, whose links share and wait.
TEST(LeastOfPieces, IsNoMoreThanWhatIsSimulated) {
  const TestMachine machine(ring_machine(8, 25, 1e-6), starting_up());
  const Program ring = ring_allreduce(8);
  const LeastTimes least = least_times(machine, ring);
  for (const std::int64_t split : {2, 3, 8, 32}) {
    const Program cut = chunk(ring, {.split = split, .piece_units = 1});
    const double time_s = run_within(machine, cut, SimLimits{}).time_s;
    const double least_s = least.of_chunks(131072 / split);
    EXPECT_LE(least_s, time_s) << split;
    EXPECT_GT(least_s, 0.7 * time_s) << split;
  }
}

/// Links that are known to be busy for long enough are not looked at further: of 2 x 56 transfers
/// of an eighth over a switch, those of the first rank to the first seven do.
TEST(LeastOfPieces, StopsWhereLinksTakeLongEnough) {
  const TestMachine machine(switch_machine(8, 25, 0));
  Builder builder("to_all", allreduce_contract(8, 8));
  for (int rank = 0; rank < 8; ++rank) {
    for (int other = 0; other < 8; ++other) {
      if (other == rank) continue;
      builder.copy(builder.output(other, rank, 1), builder.input(rank, rank, 1));
    }
  }
  const Program program = builder.finish();
  const double of_one_s = 131072 / 25e9;
  EXPECT_NEAR(least_times(machine, program).links_s, 7 * of_one_s, 1e-5 * of_one_s);
  EXPECT_NEAR(least_times(machine, program, 2.5 * of_one_s).links_s, 3 * of_one_s, 1e-5 * of_one_s);
}

/// A protocol that sends two bytes for one, such as LL, is counted once.
TEST(LeastOfPieces, CountsWhatAProtocolAddsOnce) {
  Profile profile = bare_profile();
  profile.protocol.wire = 2;
  const TestMachine machine(ring_machine(8, 25, 1e-6), profile);
  const Program ring = ring_allreduce(8);
  const double busy_s = 2 * 14 * 131072 / 25e9;
  EXPECT_NEAR(least_times(machine, ring).links_s, busy_s, 1e-5 * busy_s);
  EXPECT_NEAR(least_times(machine, ring, 0.99 * busy_s).links_s, busy_s, 0.1 * busy_s);
  EXPECT_LE(least_times(machine, ring).links_s, run_within(machine, ring, SimLimits{}).time_s);
}

}  // namespace
}  // namespace espalier
