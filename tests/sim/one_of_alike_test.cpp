// SPDX-License-Identifier: Apache-2.0
// Of lanes that behave alike one in place of all, against all of them.
#include "sim/one_of_alike.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <any>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "sim/found_out.h"
#include "sim/simulation.h"
#include "tests/sim/alike_groups.h"
#include "tests/sim/machine.h"

namespace espalier {
namespace {

RunReport run(const TestMachine& machine, const Program& program, bool only_times) {
  RunOptions options;
  options.size_bytes = program.contract.units * kUnitBytes;
  options.only_times = only_times;
  options.limits = SimLimits{};  // what gets stuck is no error
  return Simulator().run(program, machine.target(), options);
}

double busiest_s(const RunReport& report) {
  double busy_s = 0;
  for (const LinkUse& link : report.simulated->links) busy_s = std::max(busy_s, link.busy_s);
  return busy_s;
}

/// One of each kind gives up where all do.
void expect_same_limits(const TestMachine& machine, const Program& program, double time_s) {
  for (const double part : {0.3, 0.8, 1 - 1e-6, 1 + 1e-6}) {
    for (const bool only_times : {false, true}) {
      RunOptions options;
      options.size_bytes = program.contract.units * kUnitBytes;
      options.only_times = only_times;
      options.limits = SimLimits{.time_s = part * time_s};
      const RunReport report = Simulator().run(program, machine.target(), options);
      EXPECT_EQ(report.simulated->end, part < 1 ? SimEnd::too_slow : SimEnd::finished) << part;
    }
  }
}

/// Whether one of each kind was simulated; that it tells the same.
bool expect_same(const TestMachine& machine, const Program& program) {
  const RunReport all = run(machine, program, false);
  const RunReport one = run(machine, program, true);
  EXPECT_EQ(all.simulated->alike_lanes, AlikeLanes::not_looked_for);
  const bool is_of_one = one.simulated->alike_lanes == AlikeLanes::one_simulated;
  EXPECT_EQ(one.simulated->end, all.simulated->end);
  if (all.simulated->end != SimEnd::finished) return is_of_one;
  const double near_s = 1e-9 * all.time_s;
  EXPECT_NEAR(one.time_s, all.time_s, near_s);
  EXPECT_NEAR(one.simulated->back_to_back_s, all.simulated->back_to_back_s, near_s);
  EXPECT_NEAR(busiest_s(one), busiest_s(all), near_s);
  EXPECT_EQ(one.transfers, all.transfers);
  EXPECT_EQ(one.simulated->blocks, all.simulated->blocks);
  expect_same_limits(machine, program, all.time_s);
  return is_of_one;
}

/// Rings of all ranks are of one kind, whichever rank they begin at.
TEST(OneOfAlike, StandsForAllRanksOfARing) {
  const TestMachine machine(ring_machine(8, 25, kUs));
  EXPECT_TRUE(expect_same(machine, ring_allreduce(8)));
  EXPECT_EQ(run(machine, ring_allreduce(8), true).simulated->critical_path.size(), 0U);
}

/// One link that is slower than the others is as near to no two ranks.
TEST(OneOfAlike, KnowsThatASlowLinkIsNearerToSomeThanToOthers) {
  Topology topology = ring_machine(8, 25, kUs);
  topology.links[3].gbps = 20;
  const TestMachine machine(topology);
  EXPECT_FALSE(expect_same(machine, ring_allreduce(8)));
}

/// All send to rank 0, over the one link that it has: a flow of one kind uses it seven times.
TEST(OneOfAlike, CountsHowManyShareALink) {
  Builder builder("gather", allreduce_contract(8, 8));
  for (int rank = 1; rank < 8; ++rank) {
    builder.copy(builder.tmp(0, 8 * rank, 1), builder.input(rank, 0, 1));
  }
  const Program program = builder.finish();
  const TestMachine machine(switch_machine(8, 25, kUs));
  EXPECT_TRUE(expect_same(machine, program));
  EXPECT_NEAR(run(machine, program, true).time_s, 7 * kUnitBytes / 25e9 + 2 * kUs, 1e-12);
}

/// Rank 0 sends a unit and then another one, whose ways are not equally long. Rank 2 waits for the
/// second one alone, and reads what both left at rank 1: the first, which is later.
TEST(OneOfAlike, AwaitsWhatIsUnderWay) {
  Topology topology = machine_of_gpus(6);
  for (const int first : {0, 3}) {
    topology.links.push_back(gpu_link(first, first + 1, 25, 50 * kUs));
    topology.links.push_back(gpu_link(first, first + 2, 25, kUs));
    topology.links.push_back(gpu_link(first + 1, first + 2, 25, kUs));
  }
  const TestMachine machine(topology);
  Builder builder("late", allreduce_contract(6, 2));
  for (const int first : {0, 3}) {
    builder.copy(builder.tmp(first + 1, 0, 1), builder.input(first, 0, 1));
    const OpId second = builder.copy(builder.tmp(first + 2, 1, 1), builder.input(first, 1, 1));
    const OpId reads =
        builder.copy(builder.tmp(first + 2, 0, 1), builder.tmp(first + 1, 0, 1), {.at = first + 2});
    builder.after(reads, second);
  }
  const Program program = builder.finish();
  EXPECT_TRUE(expect_same(machine, program));
  EXPECT_GT(run(machine, program, true).time_s, 50 * kUs);
}

/// Ranks around a switch of which each does the same as the next one, whatever that is: what it
/// sends and adds up, to and from ranks so many further on.
TEST(OneOfAlike, TakesTheTimeOfAllOfRandomRotations) {
  constexpr int kRanks = 6;
  constexpr int kUnits = 4;
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto number = [&](int from, int to) {
      return std::uniform_int_distribution(from, to)(random);
    };
    Builder builder("rotation", allreduce_contract(kRanks, kUnits));
    for (int i = number(2, 12); i > 0; --i) {
      const int further = number(1, kRanks - 1);
      const int unit = number(0, kUnits - 1);
      const int slot = number(0, 2);
      const int lane = number(0, 2);
      const bool adds = number(0, 1) == 0;
      // What rank 0 does waits for nothing of the same row, or the first rank would differ.
      for (int rank = 0; rank < kRanks; ++rank) {
        const int to = (rank + further) % kRanks;
        const Slice dst = builder.tmp(to, unit + kUnits * (3 * i + slot), 1);
        const Slice src = i % 2 == 0 ? builder.input(rank, unit, 1)
                                     : builder.tmp(rank, unit + kUnits * (3 * i + 3 + slot), 1);
        if (adds) {
          builder.combine(dst, {builder.input(to, unit, 1), src}, {.lane = lane});
        } else {
          builder.copy(dst, src, {.lane = lane});
        }
      }
    }
    Profile profile = bare_profile();
    profile.links["nvlink2"].overhead_s = kUs;
    profile.blocks = number(1, 3);
    profile.protocol.block_gbps["other"] = 10;
    const TestMachine machine(switch_machine(kRanks, 25, number(1, 20) * kUs), profile);
    EXPECT_TRUE(expect_same(machine, builder.finish()));
    if (HasFailure()) return;
  }
}

/// The text may name ops before what they wait for.
TEST(OneOfAlike, DoesNotDependOnTheOrderOfTheText) {
  Program program = ring_allreduce(4);
  const auto count = static_cast<OpId>(program.ops.size());
  Program turned = program;
  // Lanes of ranks stay in order: the ops of rank 3 come first, then those of rank 2, and so on.
  std::vector<OpId> order(count);
  std::iota(order.begin(), order.end(), OpId{0});
  std::ranges::stable_sort(order, std::greater(), [&](OpId id) { return program.ops[id].at; });
  std::vector<OpId> number(count);
  for (OpId at = 0; at < count; ++at) number[order[at]] = at;
  for (OpId at = 0; at < count; ++at) turned.ops[at] = program.ops[order[at]];
  for (OpId& dependency : turned.dependencies) dependency = number[dependency];
  for (const int fifo_steps : {0, 2}) {
    Profile profile = bare_profile();
    profile.fifo_steps = fifo_steps;
    profile.protocol.step_bytes = kUnitBytes;
    const TestMachine machine(ring_machine(4, 25, 50 * kUs), profile);
    EXPECT_TRUE(expect_same(machine, turned));
    EXPECT_NEAR(run(machine, turned, true).time_s, run(machine, program, false).time_s, 1e-12);
  }
}

/// `on_blocks` wants the order of all ops, whoever asks.
TEST(OneOfAlike, IsNotPutOnBlocksForAll) {
  Profile profile = bare_profile();
  profile.blocks = 1;
  const TestMachine machine(switch_machine(4, 25, kUs), profile);
  Builder builder("lanes", allreduce_contract(4, 4));
  for (int lane = 0; lane < 3; ++lane) {
    for (int rank = 0; rank < 4; ++rank) {
      builder.copy(builder.tmp((rank + 1) % 4, lane, 1), builder.input(rank, lane, 1),
                   {.lane = lane});
    }
  }
  const Program program = builder.finish();
  EXPECT_TRUE(expect_same(machine, program));
  RunOptions options;
  options.size_bytes = 4 * kUnitBytes;
  options.only_times = true;
  const auto on_blocks = Simulator().on_blocks(program, machine.target(), options);
  ASSERT_TRUE(on_blocks.has_value());
  EXPECT_EQ(on_blocks->ops.size(), program.ops.size());
}

TEST(OneOfAlike, TakesTheTimeOfAllOfRandomGroups) {
  constexpr unsigned kPrograms = 400;
  unsigned of_kinds = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    AlikeGroups groups(random, std::uniform_int_distribution(2, 3)(random));
    const Program program = groups.program();
    const TestMachine machine(groups.topology(), groups.profile());
    of_kinds += expect_same(machine, program) ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(of_kinds, kPrograms * 3 / 4);
}

/// What simulations of a program found out changes nothing about later ones: on machines of other
/// figures, some of which make other lanes alike, or fewer, and for other messages.
TEST(OneOfAlike, HoldsForOtherFiguresIfTheKindsAreTheSame) {
  constexpr unsigned kPrograms = 150;
  std::size_t runs = 0;
  std::size_t kinds = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    AlikeGroups groups(random, std::uniform_int_distribution(2, 3)(random));
    const Program program = groups.program();
    const Profile first = groups.profile();
    const auto found = std::make_shared<std::any>();
    for (int i = 0; i < 8; ++i) {
      Topology topology = groups.topology();
      if (i % 4 == 3) topology.links[random() % topology.links.size()].gbps += 3;
      const TestMachine machine(topology, i < 6 ? first : groups.profile());
      for (const int scale : {1, 3, 1000}) {
        RunOptions options;
        options.size_bytes = program.contract.units * kUnitBytes * scale;
        options.only_times = true;
        options.limits = SimLimits{};
        const RunReport afresh = Simulator().run(program, machine.target(), options);
        options.found = found;
        const RunReport known = Simulator().run(program, machine.target(), options);
        EXPECT_EQ(known.simulated->alike_lanes, afresh.simulated->alike_lanes);
        EXPECT_EQ(known.simulated->end, afresh.simulated->end);
        EXPECT_EQ(known.time_s, afresh.time_s);
        EXPECT_EQ(known.simulated->back_to_back_s, afresh.simulated->back_to_back_s);
        EXPECT_EQ(known.transfers, afresh.transfers);
        EXPECT_EQ(busiest_s(known), busiest_s(afresh));
        ++runs;
      }
    }
    if (const auto* of_program = std::any_cast<FoundOut>(found.get())) {
      kinds += of_program->kinds.size();
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(runs, 2 * kinds);  // most were known
  EXPECT_GT(kinds, 2 * kPrograms);
}

/// The same whether kinds are known from messages of other sizes, and as all lanes.
TEST(OneOfAlike, HoldsForMessagesOfOtherSizes) {
  constexpr unsigned kPrograms = 300;
  const unsigned first_seed = std::random_device()();
  unsigned known_runs = 0;
  for (unsigned i = 0; i < kPrograms; ++i) {
    const unsigned seed = first_seed + i;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    AlikeGroups groups(random, std::uniform_int_distribution(2, 3)(random));
    const Program program = groups.program();
    Topology topology = groups.topology();
    Profile profile = groups.profile_of_steps();
    if (i % 2 == 1) groups.make_unlike(topology, profile);
    const TestMachine machine(topology, profile);
    RunOptions options;
    options.limits = SimLimits{};
    const auto found = std::make_shared<std::any>();
    for (int size = 0; size < 6; ++size) {
      options.size_bytes = program.contract.units << std::uniform_int_distribution(0, 24)(random);
      options.only_times = false;
      options.found = nullptr;
      const RunReport all = Simulator().run(program, machine.target(), options);
      options.only_times = true;
      const RunReport afresh = Simulator().run(program, machine.target(), options);
      options.found = found;
      if (auto* of_program = std::any_cast<FoundOut>(found.get())) {
        const Simulation again(program, machine.target(), options);
        known_runs += of_program->kinds.on_machine_of(again) != nullptr ? 1 : 0;
      }
      const RunReport known = Simulator().run(program, machine.target(), options);
      ASSERT_EQ(known.simulated->end, all.simulated->end);
      if (all.simulated->end != SimEnd::finished) continue;
      ASSERT_NEAR(known.time_s, all.time_s, 1e-9 * all.time_s);
      ASSERT_NEAR(busiest_s(known), busiest_s(all), 1e-9 * all.time_s);
      ASSERT_NEAR(known.simulated->back_to_back_s, all.simulated->back_to_back_s,
                  1e-9 * all.time_s);
      ASSERT_EQ(known.transfers, all.transfers);
      ASSERT_EQ(known.time_s, afresh.time_s);
      ASSERT_EQ(known.simulated->back_to_back_s, afresh.simulated->back_to_back_s);
      ASSERT_EQ(known.simulated->work, afresh.simulated->work);
      for (const double part : {0.5, 1 - 1e-6, 1 + 1e-6}) {
        options.limits = SimLimits{.time_s = part * all.time_s};
        const RunReport limited = Simulator().run(program, machine.target(), options);
        ASSERT_EQ(limited.simulated->end, part < 1 ? SimEnd::too_slow : SimEnd::finished) << part;
      }
      options.limits = SimLimits{};
    }
  }
  EXPECT_GT(known_runs, 3 * kPrograms);
}

}  // namespace
}  // namespace espalier
