// SPDX-License-Identifier: Apache-2.0
// From one call to the next, where calls follow each other without waiting.
#include "sim/back_to_back.h"

#include <gtest/gtest.h>

#include "tests/sim/machine.h"

namespace espalier {
namespace {

/// Four ranks pass on `chunks` units from the first to the last.
Program chain_program(int chunks) {
  Builder builder("chain", {Collective::broadcast, 4, 0, chunks, false});
  for (int chunk = 0; chunk < chunks; ++chunk) {
    builder.copy(builder.output(1, chunk, 1), builder.input(0, chunk, 1));
    builder.copy(builder.output(2, chunk, 1), builder.output(1, chunk, 1));
    builder.copy(builder.output(3, chunk, 1), builder.output(2, chunk, 1));
  }
  return builder.finish();
}

double period_s(const RunReport& report) { return report.simulated->back_to_back_s; }

TEST(BackToBack, OfAChainLeavesOutTheWayToItsEnd) {
  // Four chunks of 1 MB at 10 GB/s: 0.1 ms each, three hops. By itself 4 + 2 of them; rank 0 is
  // busy for 4 and then free for the next call.
  const TestMachine machine(ring_machine(4, 10, 0));
  const RunReport report = machine.run(chain_program(4), 4'000'000);
  EXPECT_NEAR(report.time_s, 6e-4, 1e-12);
  EXPECT_NEAR(period_s(report), 4e-4, 1e-12);
}

TEST(BackToBack, CountsLaunchesAndTheWayOfLastResults) {
  // Every call costs 0.1 ms at every rank, and the last result is under way for 0.05 ms on each
  // hop: it has come when a rank is done, but the rank before goes on without waiting for that.
  Profile profile = bare_profile();
  profile.call_overhead_s = 1e-4;
  const TestMachine machine(ring_machine(4, 10, 5e-5), profile);
  const RunReport report = machine.run(chain_program(4), 4'000'000);
  EXPECT_NEAR(report.time_s, 1e-4 + 6e-4 + 3 * 5e-5, 1e-12);
  EXPECT_NEAR(period_s(report), 1e-4 + 4e-4 + 5e-5, 1e-12);
}

TEST(BackToBack, LeavesOutWhatRestsAtARelay) {
  // Rank 1 gets a chunk of its own from 0, and on it rests what 2 fetches from there 0.3 ms later:
  // that is none of its blocks' business. Rank 3 keeps 0.1 ms.
  const TestMachine machine(ring_machine(4, 10, 0));
  Builder builder("relayed", {Collective::broadcast, 4, 0, 1, false});
  builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1), {.at = 1});
  builder.copy(builder.output(3, 0, 1), builder.input(0, 0, 1), {.at = 3});
  builder.copy(builder.output(0, 0, 1), builder.output(3, 0, 1), {.at = 0});
  builder.copy(builder.tmp(1, 0, 1), builder.output(0, 0, 1), {.lane = 1, .at = 0});
  builder.copy(builder.output(2, 0, 1), builder.tmp(1, 0, 1), {.at = 2});
  const RunReport report = machine.run(builder.finish(), 1'000'000);
  EXPECT_NEAR(report.time_s, 4e-4, 1e-12);
  EXPECT_NEAR(period_s(report), 2e-4, 1e-12) << "of rank 0";
}

TEST(BackToBack, OfARingIsItsTime) {
  // Everybody sends 1 MB in each of two steps: busy from the beginning to the end.
  const TestMachine machine(ring_machine(3, 10, 0));
  Builder builder("ring", {Collective::allgather, 3, 0, 3, false});
  for (int rank = 0; rank < 3; ++rank) {
    builder.copy(builder.output((rank + 1) % 3, rank, 1), builder.input(rank, 0, 1));
  }
  for (int rank = 0; rank < 3; ++rank) {
    const int from = (rank + 2) % 3;
    builder.copy(builder.output((rank + 1) % 3, from, 1), builder.output(rank, from, 1));
  }
  const RunReport report = machine.run(builder.finish(), 3'000'000);
  EXPECT_NEAR(report.time_s, 2e-4, 1e-12);
  EXPECT_EQ(period_s(report), report.time_s);
}

TEST(BackToBack, IsNotBelowTheBusyTimeOfALink) {
  // The first and the last hop share a medium: 0.1 ms each of 10 GB/s for one message of 1 MB. No
  // rank is busy for longer than 0.1 ms, but the medium is for 0.2 ms.
  Topology topology = ring_machine(4, 10, 0);
  for (const std::size_t link : {0, 2}) {
    topology.links[link].duplex = Duplex::shared;
    topology.links[link].medium = "bus";
  }
  const RunReport report = TestMachine(topology).run(chain_program(1), 1'000'000);
  EXPECT_NEAR(report.time_s, 3e-4, 1e-12);
  EXPECT_NEAR(period_s(report), 2e-4, 1e-12);
}

TEST(BackToBack, OfWhatIsNoCallIsItsTime) {
  const TestMachine machine(ring_machine(4, 10, 0));
  RunOptions options;
  options.size_bytes = 4'000'000;
  options.is_call = false;
  Simulator simulator;
  const RunReport report = simulator.run(chain_program(4), machine.target(), options);
  EXPECT_EQ(period_s(report), report.time_s);
}

TEST(BlocksInUse, AreThoseOfTheFullestGpu) {
  Profile profile = bare_profile();
  const auto blocks = [&] {
    return TestMachine(ring_machine(4, 10, 0), profile)
        .run(chain_program(4), 4'000'000)
        .simulated->blocks;
  };
  EXPECT_EQ(blocks(), 0);  // the profile has none
  profile.blocks = 8;
  EXPECT_EQ(blocks(), 1);  // one lane each
  profile.splits_lanes = true;
  EXPECT_EQ(blocks(), 8);  // which is split
}

}  // namespace
}  // namespace espalier
