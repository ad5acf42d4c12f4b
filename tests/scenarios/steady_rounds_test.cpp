// SPDX-License-Identifier: Apache-2.0
// Messages that NCCL goes through in thousands of rounds: counted in from a few, against all of
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ir/rounds.h"
#include "scenarios/study.h"
#include "sim/simulator.h"
#include "tests/scenarios/study_fixture.h"
#include "tests/sim/critical_check.h"

namespace espalier {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

struct Case {
  std::string topology;
  Collective collective = Collective::allreduce;
  std::string algorithm = "nccl";
  std::int64_t size_bytes = kGiB;
  std::string profile = "kernel";
  LaunchMode launch = LaunchMode::per_gpu;
  bool details = false;
};

Outcome ask(const Case& one, bool all_rounds) {
  Simulator simulator;
  Study study(simulator, &simulator);
  Query query =
      with(question(one.topology, one.collective, one.profile), one.algorithm, one.size_bytes);
  query.launch = one.launch;
  query.only_times = !one.details;
  query.may_fold = !all_rounds;
  query.all_rounds = all_rounds;
  query.judge = false;
  query.run.timeline = one.details;
  return study.ask(query);
}

/// What every link carries, and the chain of ops that decided the time.
void expect_same_details(const RunReport& few, const RunReport& all) {
  // Several may have one name, such as blocks that are slowed.
  const auto in_order = [](std::vector<LinkUse> links) {
    std::ranges::sort(links, {}, [](const LinkUse& one) { return std::pair(one.name, one.bytes); });
    return links;
  };
  const std::vector<LinkUse> of_few = in_order(few.simulated->links);
  const std::vector<LinkUse> of_all = in_order(all.simulated->links);
  ASSERT_EQ(of_few.size(), of_all.size());
  EXPECT_FALSE(of_all.empty());
  for (std::size_t i = 0; i < of_all.size(); ++i) {
    ASSERT_EQ(of_few[i].name, of_all[i].name);
    EXPECT_NEAR(of_few[i].bytes, of_all[i].bytes, 1e-9 * of_all[i].bytes) << of_all[i].name;
    EXPECT_NEAR(of_few[i].busy_s, of_all[i].busy_s, 1e-9 * of_all[i].busy_s) << of_all[i].name;
  }
  EXPECT_EQ(few.simulated->critical_steps, all.simulated->critical_steps);
}

/// The same to 1e-9, whether rounds were left out or not. Returns how many times as many ops all
/// rounds have.
double expect_same(const Case& one) {
  const Outcome few = ask(one, /*all_rounds=*/false);
  const Outcome all = ask(one, /*all_rounds=*/true);
  EXPECT_TRUE(few.ran() && all.ran()) << few.skipped.value_or("") << all.skipped.value_or("");
  if (!few.ran() || !all.ran()) return 0;
  const auto expect_near = [](double found, double expected) {
    EXPECT_NEAR(found, expected, 1e-9 * expected);
  };
  expect_near(few.report.time_s, all.report.time_s);
  expect_near(few.report.simulated->back_to_back_s, all.report.simulated->back_to_back_s);
  expect_near(few.report.simulated->together_s, all.report.simulated->together_s);
  expect_near(few.benchmark_s, all.benchmark_s);
  expect_near(few.report.simulated->busiest_s, all.report.simulated->busiest_s);
  if (one.details) {
    expect_same_details(few.report, all.report);
    if (!few.program->fold.is_folded()) expect_is_critical(few.report, *all.program, all.report);
  }
  EXPECT_EQ(few.report.transfers, all.report.transfers);
  EXPECT_EQ(few.report.message_bytes, all.report.message_bytes);
  EXPECT_EQ(few.chosen, all.chosen);
  return static_cast<double>(all.program->ops.size()) /
         static_cast<double>(few.program->ops.size());
}

void expect_same_and_less(const Case& one, double times) {
  SCOPED_TRACE(one.topology + " " + std::string(to_string(one.collective)));
  EXPECT_GT(expect_same(one), times);
}

TEST(SteadyRounds, OfRingsAreCountedIn) {
  expect_same_and_less({.topology = "dgx1-v100", .size_bytes = 16 * kGiB}, 3);
  expect_same_and_less({.topology = "mist:nodes=4", .size_bytes = 8 * kGiB}, 5);
}

/// Every rank has a block of its own, of which a round moves a part: of all ranks, or of one group
/// in place of all.
TEST(SteadyRounds, OfBlocksAreCountedIn) {
  for (const Collective collective : {Collective::allgather, Collective::reducescatter}) {
    expect_same_and_less(
        {.topology = "p2.16xlarge", .collective = collective, .size_bytes = 9 * kGiB}, 6);
    expect_same_and_less(
        {.topology = "dgx-a100:nodes=2", .collective = collective, .size_bytes = 76'543'210'987},
        6);
  }
  expect_same_and_less(
      {.topology = "dgx1-v100", .collective = Collective::reducescatter, .size_bytes = 32 * kGiB},
      3);
  expect_same_and_less({.topology = "dgx-h100:nodes=4",
                        .collective = Collective::reducescatter,
                        .size_bytes = 128 * kGiB},
                       3);
}

/// Lanes of a chain have paces of their own: its root is done long before the others.
TEST(SteadyRounds, OfChainsAreCountedIn) {
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    expect_same_and_less({.topology = "dgx2", .collective = collective, .size_bytes = 4 * kGiB}, 6);
    expect_same_and_less({.topology = "p2.16xlarge", .collective = collective}, 6);
    // Not a multiple of anything.
    expect_same_and_less(
        {.topology = "dgx-a100", .collective = collective, .size_bytes = 9'876'543'210}, 6);
  }
}

TEST(SteadyRounds, OfTreesAreCountedIn) {
  for (const char* machine : {"dgx1-v100", "p2.16xlarge"}) {
    expect_same_and_less(
        {.topology = machine, .algorithm = "nccl:algo=tree,proto=simple", .size_bytes = 4 * kGiB},
        4);
  }
}

/// Links, critical path and timeline follow.
TEST(SteadyRounds, AreCountedInWithAllDetails) {
  expect_same_and_less({.topology = "dgx1-v100", .size_bytes = 16 * kGiB, .details = true}, 3);
  expect_same_and_less({.topology = "dgx-a100",
                        .collective = Collective::broadcast,
                        .size_bytes = 9'876'543'210,
                        .details = true},
                       6);
  expect_same_and_less(
      {.topology = "p2.16xlarge", .collective = Collective::reduce, .details = true}, 6);
  expect_same_and_less({.topology = "p2.16xlarge",
                        .collective = Collective::reducescatter,
                        .size_bytes = 9 * kGiB,
                        .details = true},
                       3);
}

/// Of groups of ranks that behave alike, the path goes from group to group.
TEST(SteadyRounds, OfGroupsHaveThePathOfAllRounds) {
  const auto path_of = [](bool all_rounds) {
    Simulator simulator;
    Study study(simulator, &simulator);
    Query query =
        with(question("dgx-a100:nodes=4", Collective::reducescatter, "kernel"), "nccl", 96 * kGiB);
    query.judge = false;
    query.all_rounds = all_rounds;
    const Outcome outcome = study.ask(query);
    EXPECT_TRUE(outcome.program->fold.is_folded());
    EXPECT_EQ(outcome.report.repeated() == nullptr, all_rounds);
    return outcome.report;
  };
  const RunReport few = path_of(false);
  const RunReport all = path_of(true);
  expect_same_details(few, all);
  const std::vector<CriticalStep>& steps = few.simulated->critical_path;
  const std::vector<CriticalStep>& known = all.simulated->critical_path;
  ASSERT_EQ(steps.size(), known.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "step " << i);
    EXPECT_EQ(steps[i].op, known[i].op);
    EXPECT_EQ(steps[i].what, known[i].what);
    EXPECT_EQ(steps[i].waited_for, known[i].waited_for);
    EXPECT_NEAR(steps[i].start_s, known[i].start_s, 1e-9 * all.time_s);
    EXPECT_NEAR(steps[i].end_s, known[i].end_s, 1e-9 * all.time_s);
    if (HasFailure()) return;
  }
}

/// Processes that are launched one after the other begin a call one after the other.
TEST(SteadyRounds, OfRanksThatBeginOneAfterTheOtherAreCountedIn) {
  expect_same_and_less({.topology = "dgx1-v100",
                        .collective = Collective::reduce,
                        .size_bytes = 4 * kGiB,
                        .launch = LaunchMode::single},
                       4);
}

/// Where rounds do not repeat themselves, all are simulated.
TEST(SteadyRounds, ThatAreUnlikeAreAllSimulated) {
  EXPECT_EQ(expect_same({.topology = "kesch:nodes=2",
                         .collective = Collective::broadcast,
                         .size_bytes = 4 * kGiB}),
            1);
}

/// Machines and messages at random.
TEST(SteadyRounds, AreTheSameWhateverTheMachine) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto one_of = [&](const auto& all) { return all[random() % std::size(all)]; };
  const char* const machines[] = {"dgx1-v100:nvlink2.gbps=", "dgx-a100:nvlink3.gbps=",
                                  "mist:nodes=2,ib_edr.gbps=", "p2.8xlarge:pcie3x16.gbps="};
  const Collective collectives[] = {Collective::allreduce, Collective::broadcast,
                                    Collective::reduce};
  int fewer = 0;
  for (int i = 0; i < 12; ++i) {
    Case one;
    one.topology = one_of(machines) + std::to_string(9 + random() % 1000 / 100.0);
    one.collective = one_of(collectives);
    one.size_bytes = 2 * kGiB + static_cast<std::int64_t>(random());
    SCOPED_TRACE(one.topology + " " + std::string(to_string(one.collective)) + " " +
                 std::to_string(one.size_bytes));
    fewer += expect_same(one) > 1 ? 1 : 0;
  }
  EXPECT_GE(fewer, 4);
}

/// What would be too large a program is none.
TEST(SteadyRounds, MakeAnyMessagePossible) {
  const Case large{
      .topology = "dgx2", .collective = Collective::broadcast, .size_bytes = 1024 * kGiB};
  EXPECT_FALSE(ask(large, /*all_rounds=*/true).ran());
  Case half = large;
  half.size_bytes /= 2;
  const Outcome outcome = ask(large, /*all_rounds=*/false);
  ASSERT_TRUE(outcome.ran());
  EXPECT_NEAR(outcome.report.time_s / ask(half, /*all_rounds=*/false).report.time_s, 2, 1e-3);
}

/// A program without some of its rounds is the same program with fewer rounds.
TEST(SteadyRounds, AreLeftOutOfPrograms) {
  for (const char* algorithm : {"nccl:algo=ring,proto=simple", "nccl:algo=tree,proto=simple"}) {
    const Outcome few = ask({.topology = "dgx1-v100", .algorithm = algorithm}, false);
    const Outcome all = ask({.topology = "dgx1-v100", .algorithm = algorithm}, true);
    const auto of_few = find_rounds(*few.program);
    const auto of_all = find_rounds(*all.program);
    ASSERT_TRUE(of_few && of_all);
    EXPECT_EQ(of_few->ops, of_all->ops);
    EXPECT_EQ(of_few->units, of_all->units);
    EXPECT_EQ(few.program->ops.size() - of_few->end(), all.program->ops.size() - of_all->end());
  }
}

}  // namespace
}  // namespace espalier
