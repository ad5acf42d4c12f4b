// SPDX-License-Identifier: Apache-2.0
#include "exec/host/host_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "exec/host/host_memory.h"
#include "tests/exec/every_type.h"
#include "tests/exec/test_programs.h"
#include "tests/limited_memory.h"

namespace espalier {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

RunReport run(const Program& program, const RunOptions& options, int threads = 2) {
  return HostBackend(threads).run(program, {}, options);
}

std::string error_of(const Program& program, const RunOptions& options, ErrorKind kind) {
  try {
    run(program, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return "no error";
}

TEST(HostBackend, RunsAndChecksEveryTypeAndOperator) {
  expect_every_type_and_operator([](const auto&... asked) { return run(asked...); });
}

TEST(HostBackend, CountsTransfersAsOperandsFromOtherPlaces) {
  // Tree over 3 ranks: r0 adds up two remote parts, two ranks fetch the result; leaf copies are
  // local.
  EXPECT_EQ(run(tree_program(3, false), {.size_bytes = 4}).transfers, 4);
  // Flat over 2 ranks through host memory: two combines with two operands each, all from elsewhere,
  // and two copies.
  EXPECT_EQ(run(flat_program(2, false), {.size_bytes = 4}).transfers, 6);
}

TEST(HostBackend, RoundsTheMessageToWholeElementsAndBlocks) {
  // 4 ranks alltoall of 23 bytes: 5 floats, rounded up to blocks of 2 elements: 4 x 2 x 4 bytes.
  Builder builder("direct", test_contract(Collective::alltoall, 4, 4));
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      builder.copy(builder.output(to, from, 1), builder.input(from, to, 1));
    }
  }
  const RunReport report = run(builder.finish(), {.size_bytes = 23});
  EXPECT_EQ(report.message_bytes, 32);
  EXPECT_EQ(report.executed->wrong, 0);
}

TEST(HostBackend, ReportsAWrongResult) {
  // r1 never gets r0's contribution.
  Builder builder("wrong", test_contract(Collective::allreduce, 2, 1));
  builder.combine(builder.output(0, 0, 1), {builder.input(0, 0, 1), builder.input(1, 0, 1)});
  builder.copy(builder.output(1, 0, 1), builder.input(1, 0, 1));
  const Program program = builder.finish();
  RunOptions options{.size_bytes = 4 * 1000};
  const RunReport report = run(program, options);
  ASSERT_TRUE(report.executed->wrong.has_value());
  // Both times they are looked at, nearly every element of r1: few contributions are 0.
  EXPECT_GT(*report.executed->wrong, 2 * 900);
  EXPECT_LE(*report.executed->wrong, 2 * 1000);
  options.check = false;
  EXPECT_EQ(run(program, options).executed->wrong, std::nullopt);
}

TEST(HostBackend, ReportsAnInputThatWasWrittenTo) {
  Builder builder("clobber", test_contract(Collective::allreduce, 1, 1));
  builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1));
  Program program = builder.finish();
  // in <- out + in, which the builder would not allow for long: the verifier's rule R8.
  Op op = program.ops[0];
  op.dst = {0, 0, Buffer::in};
  op.src_begin = 1;
  op.src_count = 2;
  program.sources.push_back({0, 0, Buffer::out});
  program.sources.push_back({0, 0, Buffer::in});
  program.ops.push_back(op);
  const RunReport report =
      run(program, {.size_bytes = 100, .type = DataType::int32, .op = ReduceOp::max});
  EXPECT_EQ(report.executed->wrong, 0);  // max(x, x) = x: written, not changed
  const RunReport sum = run(program, {.size_bytes = 100, .type = DataType::int32});
  ASSERT_EQ(sum.executed->damage.size(), 2U);  // each time it is looked at
  EXPECT_THAT(sum.executed->damage[0], HasSubstr(" elements of the input were overwritten"));
  EXPECT_GT(sum.executed->wrong, 2 * 20);
}

TEST(HostBackend, KeepsTheTimelineOfTheLastRun) {
  const Program program = ring_program(3, false);
  RunOptions options{.size_bytes = 1 << 16, .iterations = 2, .timeline = true};
  const RunReport report = run(program, options);
  ASSERT_EQ(report.timeline.size(), program.ops.size());
  for (const OpTiming& timing : report.timeline)
    EXPECT_LE(timing.end_s, report.executed->max_time_s);
}

TEST(HostBackend, RunsManyRanks) {
  const RunReport report = run(ring_program(200, false), {.size_bytes = 4 * 1009}, 3);
  EXPECT_EQ(report.executed->wrong, 0);
}

TEST(HostBackend, ReportsADeadlock) {
  Program program;
  program.contract = test_contract(Collective::allreduce, 1, 1);
  add_marker(program, 0, {1});
  add_marker(program, 0, {0});
  EXPECT_THAT(error_of(program, {.size_bytes = 4}, ErrorKind::runtime),
              HasSubstr("r0 lane 0: op 0 'compute 0 at r0 after 1' waits for op 1"));
}

TEST(HostBackend, RefusesWhatDoesNotFitInMemory) {
  const std::string text = error_of(ring_program(4, false), {.size_bytes = std::int64_t{1} << 50},
                                    ErrorKind::unsupported);
  // Four ranks with input, result and scratch each.
  EXPECT_THAT(text, HasSubstr("error: a message of 1024TiB needs "));
  EXPECT_THAT(text, HasSubstr(" of the memory of this computer (inputs 4194304.0 GiB, results "
                              "4194304.0 GiB, scratch 4194304.0 GiB, checking "));
  EXPECT_THAT(text, HasSubstr(", commands "));
  EXPECT_THAT(text, HasSubstr(", guards and rounding "));
  EXPECT_THAT(text, HasSubstr("), which can give "));
  EXPECT_THAT(text, HasSubstr("B fits"));
}

class LimitedMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (!kCanLimitMemory) GTEST_SKIP() << "with a sanitizer, addresses can't be limited";
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
  }
};

[[noreturn]] void run_in_64_mib() {
  limit_memory(std::size_t{64} << 20);
  end_with_error_of([] { run(ring_program(4, false), {.size_bytes = 1 << 25}); });
}

TEST_F(LimitedMemory, IsCountedBeforeTheRun) {
  EXPECT_EXIT(run_in_64_mib(), testing::ExitedWithCode(3),
              "error: a message of 32MiB needs 424.0 MiB of the memory of this computer \\(inputs "
              "128.0 MiB, results 128.0 MiB, scratch 128.0 MiB, checking 16.0 MiB, guards and "
              "rounding 24.0 MiB, commands .*\\), which can give 5... MiB\n"
              "  help: 2MiB fits");
}

[[noreturn]] void allocate_in_64_mib() {
  const LanePrograms lowered = lower(ring_program(4, false), 1 << 23, 4);
  limit_memory(std::size_t{64} << 20);
  end_with_error_of([&] { HostMemory memory(lowered); });
}

TEST_F(LimitedMemory, IsTheSameKindOfErrorWhenItIsNoticedLate) {
  EXPECT_EXIT(allocate_in_64_mib(), testing::ExitedWithCode(3),
              "error: this computer has no memory left for the buffers");
}

TEST(HostBackend, RefusesOptionsThatMakeNoSense) {
  RunOptions options;
  options.size_bytes = -1;
  options.iterations = 0;
  options.warmup = -1;
  options.timeout_s = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(error_of(ring_program(2, false), options, ErrorKind::usage),
            "error: the size is -1 bytes, but must be between 0 and 2^50\n"
            "error: there must be at least one iteration\n"
            "error: the number of warm-up runs must not be negative\n"
            "error: the timeout must be positive");
}

}  // namespace
}  // namespace espalier
