// SPDX-License-Identifier: Apache-2.0
// That runs are compared with what they should leave, each at the place where it counts.
#include "exec/host/host_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "tests/exec/test_programs.h"

namespace espalier {
namespace {

using testing::Contains;
using testing::IsEmpty;

constexpr std::int64_t kElements = 1009;

/// Runs a program of 3 ranks in which `damage` follows each op, told in which run that is, from 0.
RunReport run_damaged(const Program& program, const RunOptions& options,
                      const std::function<void(int run, OpId id, std::byte* dst)>& damage) {
  const HostData data{program, ElementLayout(program.contract, kElements), DataType::int32,
                      ReduceOp::sum, 2};
  const LanePrograms lowered = lower(program, kElements, 4);
  HostMemory memory(lowered);
  const LaneRunner::Combine combine = combine_on(data, lowered, memory);
  std::atomic<std::size_t> calls{0};
  return run_on_host(
      data, lowered, memory,
      [&](OpId id) {
        combine(id);
        const auto run = static_cast<int>(calls++ / program.ops.size());
        damage(run, id, memory.at(lowered.ops[id].dst));
      },
      {}, options);
}

void nothing(int, OpId, std::byte*) {}

TEST(HostRun, RightRunsAreRightInPlaceAndOut) {
  for (const bool in_place : {false, true}) {
    const RunReport report =
        run_damaged(ring_program(3, in_place), {.iterations = 3, .warmup = 2}, nothing);
    EXPECT_EQ(report.executed->wrong, 0);
    EXPECT_THAT(report.executed->damage, IsEmpty());
  }
}

// Run 0 is the one that is checked first, 1 to 3 are timed.
TEST(HostRun, ATimedRunThatGoesWrongIsReported) {
  for (const bool in_place : {false, true}) {
    const Program program = ring_program(3, in_place);
    const auto last = static_cast<OpId>(program.ops.size() - 1);
    const RunReport report =
        run_damaged(program, {.iterations = 3}, [&](int run, OpId id, std::byte* dst) {
          if (run == 3 && id == last) dst[0] ^= std::byte{1};
        });
    EXPECT_EQ(report.executed->wrong, 1) << in_place;
  }
}

// What is left of the first run is right; the last one is compared on fresh memory, too.
TEST(HostRun, RunsInPlaceThatWriteNothingAreReported) {
  Builder builder("gather", test_contract(Collective::allgather, 2, 2, true));
  builder.copy(builder.output(1, 0, 1), builder.output(0, 0, 1));
  builder.copy(builder.output(0, 1, 1), builder.output(1, 1, 1));
  const Program program = builder.finish();
  const HostData data{program, ElementLayout(program.contract, kElements), DataType::int32,
                      ReduceOp::sum, 2};
  const LanePrograms lowered = lower(program, kElements, 4);
  HostMemory memory(lowered);
  const LaneRunner::Combine combine = combine_on(data, lowered, memory);
  std::atomic<std::size_t> calls{0};
  const auto for_one_run = [&](OpId id) {
    if (calls++ < program.ops.size()) combine(id);
  };
  const RunReport report = run_on_host(data, lowered, memory, for_one_run, {}, {.iterations = 2});
  EXPECT_GT(*report.executed->wrong, kElements / 2);
}

TEST(HostRun, DamageBesideABufferIsSeenWhicheverTimedRunDidIt) {
  for (const bool in_place : {false, true}) {
    const Program program = flat_program(3, in_place);
    const RunReport report =
        run_damaged(program, {.iterations = 3}, [&](int run, OpId id, std::byte* dst) {
          // Op 3 writes all of r0's result.
          if (run == 3 && id == 3) dst[-1] ^= std::byte{1};
        });
    EXPECT_THAT(report.executed->damage,
                Contains(testing::HasSubstr("1 bytes beside the buffer were overwritten")));
  }
}

TEST(HostRun, NothingIsLookedAtWithoutCheck) {
  const RunReport report =
      run_damaged(ring_program(3, true), {.iterations = 2, .check = false}, nothing);
  EXPECT_EQ(report.executed->wrong, std::nullopt);
}

}  // namespace
}  // namespace espalier
