// SPDX-License-Identifier: Apache-2.0
#include "sim/steady_state.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "ir/builder.h"
#include "sim/simulator.h"
#include "tests/sim/machine.h"

namespace espalier {
namespace {

constexpr std::int64_t kUnitBytes = 1 << 20;

/// Each round goes down a chain of ranks, unit by unit.
Program chain(int ranks, int rounds) {
  Builder builder("chain", {Collective::broadcast, ranks, 0, rounds, false});
  for (int round = 0; round < rounds; ++round) {
    builder.copy(builder.output(0, round, 1), builder.input(0, round, 1), {.lane = 1});
    for (int rank = 1; rank < ranks; ++rank) {
      const Slice from =
          rank == 1 ? builder.input(0, round, 1) : builder.output(rank - 1, round, 1);
      builder.copy(builder.output(rank, round, 1), from, {.lane = 0});
    }
  }
  return builder.finish();
}

RunReport run(const TestMachine& machine, const Program& program, std::int64_t more_rounds,
              std::optional<double> at_most_s = {}) {
  RunOptions options;
  options.size_bytes = (program.contract.units + more_rounds) * kUnitBytes;
  options.only_times = true;
  options.more_rounds = more_rounds;
  if (at_most_s) options.limits = SimLimits{.time_s = *at_most_s};
  return Simulator().run(program, machine.target(), options);
}

/// What a unit takes over a link of so many GB/s.
double unit_s(double gbps) { return static_cast<double>(kUnitBytes) / (gbps * 1e9); }

void expect_takes(const RunReport& report, double time_s) {
  ASSERT_EQ(report.simulated->end, SimEnd::finished);
  EXPECT_NEAR(report.time_s, time_s, 1e-12 * time_s);
}

TEST(SteadyState, CountsRoundsIn) {
  constexpr double kGbps = 10;
  const TestMachine machine(ring_machine(4, kGbps, 0));
  for (const int rounds : {8, 9, 30}) {
    for (const std::int64_t more : {0, 1, 7, 1'000'000}) {
      const RunReport report = run(machine, chain(4, rounds), more);
      // The last of all units leaves the root when all others have, and has two hops to go then.
      const auto units = static_cast<double>(rounds + more);
      expect_takes(report, (units + 2) * unit_s(kGbps));
      EXPECT_EQ(report.transfers, 3 * (rounds + more));
      EXPECT_EQ(report.message_bytes, (rounds + more) * kUnitBytes);
      EXPECT_NEAR(report.simulated->links.at(0).bytes, units * kUnitBytes, 1e-6 * kUnitBytes);
      // Each GPU is busy with every unit once.
      EXPECT_NEAR(report.simulated->back_to_back_s, units * unit_s(kGbps), 1e-12 * report.time_s);
    }
  }
}

/// Fast lanes are done while slow ones have hardly begun.
TEST(SteadyState, CountsInLanesOutOfStep) {
  Topology topology = ring_machine(4, 10, 0);
  topology.links[1].gbps = 2;
  topology.links[2].gbps = 3;
  const TestMachine machine(std::move(topology));
  const RunReport report = run(machine, chain(4, 40), 100'000);
  // To the slow link, over it all units, and on.
  expect_takes(report, unit_s(10) + 100'040 * unit_s(2) + unit_s(3));
}

TEST(SteadyState, IsBoundByLimits) {
  const TestMachine machine(ring_machine(4, 10, 0));
  const double time_s = (1016 + 2) * unit_s(10);
  EXPECT_EQ(run(machine, chain(4, 16), 1000, 1.01 * time_s).simulated->end, SimEnd::finished);
  EXPECT_EQ(run(machine, chain(4, 16), 1000, 0.99 * time_s).simulated->end, SimEnd::too_slow);
}

/// Lanes out of step that share a link slow each other down: when one is done with a long message,
/// the other is far from where it would be by then.
TEST(SteadyState, IsNotClaimedWhereLanesOutOfStepShareALink) {
  const TestMachine machine(ring_machine(4, 10, 0));
  Builder builder("two", {Collective::broadcast, 2, 0, 4 * 64, false});
  for (int round = 0; round < 64; ++round) {
    const auto copy = [&](int begin, int length, int to, int lane) {
      builder.copy(builder.output(to, 4 * round + begin, length),
                   builder.input(0, 4 * round + begin, length), {.lane = lane});
    };
    copy(0, 1, 1, 0);
    copy(1, 3, 1, 1);
    copy(0, 4, 0, 2);
  }
  EXPECT_EQ(run(machine, builder.finish(), 1000).simulated->end, SimEnd::unsteady);
}

/// And enough of them to see that they repeat themselves.
TEST(SteadyState, NeedsRounds) {
  const TestMachine machine(ring_machine(4, 10, 0));
  EXPECT_EQ(run(machine, chain(4, 2), 1000).simulated->end, SimEnd::unsteady);
  // Four rounds, and the first unit has just come to the last rank: nothing has repeated itself.
  EXPECT_EQ(run(machine, chain(4, 4), 1000).simulated->end, SimEnd::unsteady);
}

}  // namespace
}  // namespace espalier
