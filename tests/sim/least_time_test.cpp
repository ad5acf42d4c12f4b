// SPDX-License-Identifier: Apache-2.0
// Simulations that are abandoned because of what they take at least. That none is abandoned that
// would have ended in time is tested on every algorithm: tests/conformance/engines_test.cpp.
#include "sim/least_time.h"

#include <gtest/gtest.h>

#include <cstdint>

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

/// Every step waits for the one before; start-up and bytes of all are known beforehand.
TEST(LeastTime, AbandonsAChainOfOpsThatIsTooLong) {
  Profile profile = bare_profile();
  profile.links["nvlink2"].overhead_s = 2e-6;
  const TestMachine machine(ring_machine(8, 25, 1e-6), profile);
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

}  // namespace
}  // namespace espalier
