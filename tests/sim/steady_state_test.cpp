// SPDX-License-Identifier: Apache-2.0
#include "sim/steady_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/rounds.h"
#include "sim/simulator.h"
#include "tests/sim/critical_check.h"
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
              int units_of_round = 1, std::optional<double> at_most_s = {}) {
  RunOptions options;
  options.size_bytes = (program.contract.units + more_rounds * units_of_round) * kUnitBytes;
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
  EXPECT_EQ(run(machine, chain(4, 16), 1000, 1, 1.01 * time_s).simulated->end, SimEnd::finished);
  EXPECT_EQ(run(machine, chain(4, 16), 1000, 1, 0.99 * time_s).simulated->end, SimEnd::too_slow);
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
  EXPECT_EQ(run(machine, builder.finish(), 1000, 4).simulated->end, SimEnd::unsteady);
}

/// And enough of them to see that they repeat themselves.
TEST(SteadyState, NeedsRounds) {
  const TestMachine machine(ring_machine(4, 10, 0));
  EXPECT_EQ(run(machine, chain(4, 2), 1000).simulated->end, SimEnd::unsteady);
  // Four rounds, and the first unit has just come to the last rank: nothing has repeated itself.
  EXPECT_EQ(run(machine, chain(4, 4), 1000).simulated->end, SimEnd::unsteady);
}

/// Chains of copies, all of which every round goes down.
struct Chain {
  int start = 0, hops = 1, direction = 1, units = 1;
  int lane = 0, lanes = 1;  ///< hops take turns on so many
  bool keeps_own = false;   ///< the first rank copies its own, on another lane
};

/// A round of all chains after the other; and so many units more, which go down some of them.
Program rounds_of(const std::vector<Chain>& chains, int ranks, int rounds, int more_units) {
  int of_round = 0;
  for (const Chain& chain : chains) of_round += chain.units;
  const int units = of_round * rounds + more_units;
  Builder builder("chains", {Collective::allreduce, ranks, 0, units, false});
  for (int begin = 0; begin < units; begin += of_round) {
    int unit = begin;
    for (const Chain& chain : chains) {
      const int length = std::min(chain.units, units - unit);
      if (length <= 0) break;
      Slice from = builder.input(chain.start, unit, length);
      const Slice own = builder.output(chain.start, unit, length);
      if (chain.keeps_own) builder.copy(own, from, {.lane = chain.lane + 8});
      int rank = chain.start;
      for (int hop = 0; hop < chain.hops; ++hop) {
        rank = (rank + chain.direction + ranks) % ranks;
        const Slice to = builder.output(rank, unit, length);
        builder.copy(to, from, {.lane = chain.lane + hop % chain.lanes});
        from = to;
      }
      unit += length;
    }
  }
  return builder.finish();
}

/// Programs on machines at random: counted in, they take what they take with all their rounds.
class RandomRounds {
 public:
  explicit RandomRounds(std::uint32_t seed) : random_(seed) {}

  /// Whether rounds were counted in.
  bool expect_same() {
    const int ranks = between(2, 5);
    std::vector<Chain> chains;
    int of_round = 0;
    for (int i = between(1, 4); i > 0; --i) {
      chains.push_back({between(0, ranks - 1), between(1, ranks - 1), flip() ? 1 : -1,
                        between(1, 4), between(0, 2), between(0, 3) == 0 ? 2 : 1, flip()});
      of_round += chains.back().units;
    }
    const int rest = flip() ? between(0, of_round) : 0;
    const int rounds = between(16, 25);
    const int more = 12 * between(1, 20);
    const TestMachine machine(topology(ranks), profile());
    const Program few = rounds_of(chains, ranks, rounds, rest);
    const Program all = rounds_of(chains, ranks, rounds + more, rest);
    if (find_rounds(few).value_or(Rounds{}).units != static_cast<std::uint32_t>(of_round)) {
      return false;  // chains alike make shorter rounds
    }
    RunOptions options;
    options.size_bytes = all.contract.units * kUnitBytes;
    options.only_times = flip();
    options.timeline = !options.only_times;
    options.limits = SimLimits{};  // what gets stuck is no error
    const RunReport expected = Simulator().run(all, machine.target(), options);
    options.more_rounds = more;
    const RunReport found = Simulator().run(few, machine.target(), options);
    if (found.simulated->end != SimEnd::finished) return false;
    EXPECT_EQ(expected.simulated->end, SimEnd::finished);
    if (!options.only_times) expect_same_ops(found, all, expected);
    expect_near(found.time_s, expected.time_s);
    expect_near(found.simulated->back_to_back_s, expected.simulated->back_to_back_s);
    EXPECT_EQ(found.transfers, expected.transfers);
    EXPECT_EQ(found.simulated->links.size(), expected.simulated->links.size());
    for (std::size_t i = 0; i < expected.simulated->links.size(); ++i) {
      expect_near(found.simulated->links[i].bytes, expected.simulated->links[i].bytes);
    }
    return true;
  }

 private:
  int between(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<std::uint32_t>(most - least + 1));
  }
  bool flip() { return between(0, 1) == 1; }
  double us(int least, int most) { return between(least, most) * 1e-6; }
  static void expect_near(double found, double expected) {
    EXPECT_NEAR(found, expected, 1e-9 * expected);
  }

  /// Every op of all rounds is like one that was simulated, and the critical path is one of them.
  static void expect_same_ops(const RunReport& found, const Program& all,
                              const RunReport& expected) {
    const auto expect_near_date = [&](double date_s, double expected_s) {
      EXPECT_NEAR(date_s, expected_s, 1e-9 * expected.time_s);
    };
    ASSERT_NE(found.repeated(), nullptr);
    const RepeatedRounds& repeated = *found.repeated();
    ASSERT_EQ(found.timeline.size() + repeated.left_out(), expected.timeline.size());
    for (OpId number = 0; number < expected.timeline.size(); ++number) {
      const RepeatedRounds::Like like = repeated.like(number);
      ASSERT_EQ(like.simulated + like.ops_on, number);
      const bool is_counted_in = like.again > 0 && like.simulated < repeated.end;
      double later_s = 0;
      if (is_counted_in) {
        const double period_s = repeated.period_s[like.simulated - repeated.begin];
        later_s = static_cast<double>(like.again) * period_s;
      } else {
        EXPECT_EQ(found.number(like.simulated), number);
      }
      const OpTiming& timing = found.timeline[like.simulated];
      expect_near_date(timing.start_s + later_s, expected.timeline[number].start_s);
      expect_near_date(timing.end_s + later_s, expected.timeline[number].end_s);
    }
    expect_is_critical(found, all, expected);
  }

  Topology topology(int ranks) {
    const double latency_s = flip() ? us(1, 30) : 0;
    Topology topology = between(0, 3) == 0 ? switch_machine(ranks, 10, latency_s)
                                           : ring_machine(ranks, 10, latency_s);
    const bool is_even = flip();
    const bool has_half_duplex = between(0, 3) == 0;
    for (Link& link : topology.links) {
      if (!is_even) link.gbps = flip() ? between(2, 20) : 2 + between(0, 999) / 77.0;
      if (has_half_duplex && flip()) link.duplex = Duplex::half;
    }
    return topology;
  }

  Profile profile() {
    Profile profile = bare_profile();
    Protocol& protocol = profile.protocol;
    profile.gets_wait = flip();
    if (flip()) {
      profile.fifo_steps = between(2, 8);
      protocol.step_bytes = static_cast<double>(kUnitBytes) / between(1, 2);
    }
    if (flip()) profile.local_overhead_s = us(1, 20);
    if (between(0, 2) == 0) profile.blocks = between(1, 3);
    if (flip()) protocol.hop_s[LinkClass::gpu_fabric] = us(1, 40);
    if (flip()) protocol.hold_s[LinkClass::gpu_fabric] = us(1, 20);
    if (flip()) {
      protocol.slice_bytes = static_cast<double>(kUnitBytes) / between(1, 4);
      protocol.slices_per_op = between(1, 4);
    }
    if (flip()) protocol.drift_ops = between(1, 12);
    return profile;
  }

  std::mt19937 random_;
};

TEST(SteadyState, IsWhatAllRoundsComeTo) {
  constexpr int kPrograms = 1500;
  const std::uint32_t first = std::random_device()();
  int counted_in = 0;
  for (std::uint32_t seed = first; seed < first + kPrograms; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    counted_in += RandomRounds(seed).expect_same() ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(counted_in, kPrograms / 5);
}

/// Once adrift, a slow lane leaves room for a fast one on the link of both. But with its first ops
/// it did not, and rounds of the fast one that are left out run beside these.
TEST(SteadyState, IsNotClaimedWhereFirstOpsHaveNoRoom) {
  Profile profile = bare_profile();
  profile.protocol.hop_s[LinkClass::gpu_fabric] = 900e-6;
  profile.protocol.drift_ops = 10;
  const TestMachine machine(ring_machine(2, 10, 0), profile);
  const std::vector<Chain> chains = {{.units = 1, .lane = 0}, {.units = 32, .lane = 1}};
  const RunReport report = run(machine, rounds_of(chains, 2, 16, 0), 1200, 33);
  EXPECT_EQ(report.simulated->end, SimEnd::unsteady);
}

}  // namespace
}  // namespace espalier
