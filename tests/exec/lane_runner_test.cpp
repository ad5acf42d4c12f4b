// SPDX-License-Identifier: Apache-2.0
#include "exec/host/lane_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ir/builder.h"
#include "tests/exec/test_programs.h"

namespace espalier {
namespace {

void nothing(OpId) {}

std::string error_of(LaneRunner& runner, double timeout_s) {
  try {
    runner.run(timeout_s);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::runtime);
    return error.what();
  }
  return "no error";
}

// Copies within a rank's scratch that depend on random earlier ops, on random lanes of random
// ranks.
Program random_program(int ranks, int ops, std::mt19937& random) {
  Program program;
  program.contract = test_contract(Collective::allreduce, ranks, 1);
  for (OpId id = 0; id < static_cast<OpId>(ops); ++id) {
    std::vector<OpId> dependencies;
    for (unsigned i = 0; id > 0 && i < random() % 4; ++i) dependencies.push_back(random() % id);
    add_marker(program, static_cast<PlaceId>(random() % static_cast<unsigned>(ranks)),
               dependencies);
    Op& op = program.ops.back();
    op.kind = OpKind::combine;
    op.lane = static_cast<std::uint16_t>(random() % 3);
    op.length = 1;
    op.src_count = 1;
    op.src_begin = static_cast<std::uint32_t>(program.sources.size());
    op.dst = {op.at, 0, Buffer::tmp};
    program.sources.push_back({op.at, 1, Buffer::tmp});
  }
  return program;
}

TEST(LaneRunner, KeepsDependenciesAndLanesOnAnyNumberOfThreads) {
  constexpr unsigned kSeed = 42;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 10; ++round) {
    const Program program = random_program(1 + round * 7, 1000, random);
    const LanePrograms lowered = lower(program, 1, 4);
    for (const int threads : {1, 2, 3, 16}) {
      // Plain flags: a thread that read one too early would be a race too, for the thread
      // sanitizer.
      std::vector<char> done(program.ops.size(), 0);
      std::atomic<int> violations{0};
      std::vector<OpId> previous(program.ops.size(), Builder::kNone);
      for (const Lane& lane : lowered.lanes) {
        OpId last = Builder::kNone;
        for (const Command& command : lowered.commands_of(lane)) {
          if (command.kind != CommandKind::combine) continue;
          previous[command.index] = last;
          last = command.index;
        }
      }
      LaneRunner runner(
          program, lowered,
          [&](OpId id) {
            for (const OpId earlier : program.dependencies_of(program.ops[id])) {
              if (!done[earlier]) ++violations;
            }
            if (previous[id] != Builder::kNone && !done[previous[id]]) ++violations;
            done[id] = 1;
          },
          threads);
      for (int run = 0; run < 3; ++run) {
        done.assign(done.size(), 0);
        EXPECT_GE(runner.run(60), 0);
        EXPECT_THAT(done, testing::Each(1)) << "seed " << kSeed << ", round " << round;
      }
      EXPECT_EQ(violations, 0) << "seed " << kSeed << ", round " << round << ", " << threads
                               << " threads";
    }
  }
}

TEST(LaneRunner, RunsManyMoreLanesThanThreads) {
  const Program program = ring_program(200, false);
  const LanePrograms lowered = lower(program, 200, 4);
  ASSERT_GE(lowered.lanes.size(), 200U);
  std::atomic<std::size_t> calls{0};
  LaneRunner runner(
      program, lowered, [&](OpId) { ++calls; }, 2);
  runner.run(60);
  EXPECT_EQ(calls, program.ops.size());
}

TEST(LaneRunner, RunsAnEmptyProgram) {
  const Program program = Builder("empty", test_contract(Collective::allreduce, 3, 1)).finish();
  const LanePrograms lowered = lower(program, 5, 4);
  LaneRunner runner(program, lowered, nothing, 4);
  EXPECT_GE(runner.run(60), 0);
}

TEST(LaneRunner, NamesTheOpsOfADeadlockAtOnce) {
  Program program;
  program.contract = test_contract(Collective::allreduce, 2, 1);
  add_marker(program, 0, {});   // 0
  add_marker(program, 0, {2});  // 1
  add_marker(program, 1, {1});  // 2
  const LanePrograms lowered = lower(program, 1, 4);
  for (const int threads : {1, 2, 4}) {
    LaneRunner runner(program, lowered, nothing, threads);
    // Far within the timeout, and again on the same threads.
    for (int i = 0; i < 2; ++i) {
      const auto start = std::chrono::steady_clock::now();
      EXPECT_EQ(
          error_of(runner, 3600),
          "error: the program cannot continue: every unfinished lane waits for another one (2 of 2 "
          "lanes have not finished)\n"
          "error: r0 lane 0: op 1 'compute 0 at r0 after 2' waits for op 2 'compute 0 at r1 "
          "after 1' of r1 lane 0\n"
          "error: r1 lane 0: op 2 'compute 0 at r1 after 1' waits for op 1 'compute 0 at r0 "
          "after 2' of r0 lane 0");
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
    }
  }
}

TEST(LaneRunner, ALaneThatWaitsForItselfIsADeadlock) {
  Program program;
  program.contract = test_contract(Collective::allreduce, 1, 1);
  add_marker(program, 0, {1});
  add_marker(program, 0, {});
  const LanePrograms lowered = lower(program, 1, 4);
  LaneRunner runner(program, lowered, nothing, 1);
  EXPECT_THAT(
      error_of(runner, 3600),
      testing::HasSubstr("r0 lane 0: op 0 'compute 0 at r0 after 1' waits for op 1 'compute "
                         "0 at r0' of r0 lane 0"));
}

TEST(LaneRunner, NamesOnlyTheFirstOfManyBlockedLanes) {
  Program program;
  program.contract = test_contract(Collective::allreduce, 20, 1);
  for (int r = 0; r < 20; ++r) add_marker(program, r, {static_cast<OpId>((r + 1) % 20)});
  const LanePrograms lowered = lower(program, 1, 4);
  LaneRunner runner(program, lowered, nothing, 2);
  const std::string text = error_of(runner, 3600);
  EXPECT_THAT(text, testing::HasSubstr("error: r7 lane 0: op 7 "));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("error: r8 lane 0")));
  EXPECT_THAT(text, testing::EndsWith("error: ... and 12 more lanes"));
}

TEST(LaneRunner, AnOpThatHangsRunsIntoTheTimeout) {
  Builder builder("hang", test_contract(Collective::allreduce, 2, 1));
  builder.copy(builder.tmp(1, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.output(1, 0, 1), builder.tmp(1, 0, 1));
  const Program program = builder.finish();
  const LanePrograms lowered = lower(program, 1, 4);
  std::atomic<bool> hang{true};
  LaneRunner runner(
      program, lowered,
      [&](OpId id) {
        if (id == 0 && hang) std::this_thread::sleep_for(std::chrono::milliseconds(400));
      },
      2);
  EXPECT_EQ(error_of(runner, 0.1),
            "error: no op has ended for 100 ms (2 of 2 lanes have not finished)\n"
            "error: r0 lane 0: op 0 'r1.tmp[0] <- r0.in[0]' has not finished\n"
            "  help: if it is only slow, raise --timeout\n"
            "error: r1 lane 0: op 1 'r1.out[0] <- r1.tmp[0] after 0' waits for op 0 'r1.tmp[0] <- "
            "r0.in[0]' of r0 lane 0");
  hang = false;
  EXPECT_GE(runner.run(60), 0);
}

TEST(LaneRunner, ComputeOpsTakeTheirTimeAndNoThread) {
  // 20 ranks compute 0.3 s each, on one thread: together, not 6 s one after the other. The timeout
  // is shorter than an op, which is no reason to give up.
  Program program;
  program.contract = test_contract(Collective::allreduce, 20, 1);
  for (int r = 0; r < 20; ++r) add_marker(program, r, {}, 0.3);
  const LanePrograms lowered = lower(program, 1, 4);
  LaneRunner runner(program, lowered, nothing, 1);
  std::vector<OpTiming> timeline;
  const double time_s = runner.run(0.15, &timeline);
  EXPECT_GE(time_s, 0.3);
  EXPECT_LT(time_s, 3.0);
  for (const OpTiming& timing : timeline) EXPECT_GE(timing.end_s - timing.start_s, 0.299);
}

TEST(LaneRunner, TimelineShowsEveryOpAfterWhatItNeeds) {
  const Program program = ring_program(5, false);
  const LanePrograms lowered = lower(program, 5, 4);
  LaneRunner runner(program, lowered, nothing, 2);
  std::vector<OpTiming> timeline;
  const double time_s = runner.run(60, &timeline);
  ASSERT_EQ(timeline.size(), program.ops.size());
  for (OpId id = 0; id < program.ops.size(); ++id) {
    EXPECT_EQ(timeline[id].op, id);
    EXPECT_LE(0, timeline[id].start_s);
    EXPECT_LE(timeline[id].start_s, timeline[id].end_s);
    EXPECT_LE(timeline[id].end_s, time_s);
    for (const OpId earlier : program.dependencies_of(program.ops[id])) {
      EXPECT_LE(timeline[earlier].end_s, timeline[id].start_s);
    }
  }
}

}  // namespace
}  // namespace espalier
