// SPDX-License-Identifier: Apache-2.0
// Ops in a switch: several destinations, an order of adding up that is the switch's own.
#include <gtest/gtest.h>

#include <vector>

#include "ir/builder.h"
#include "ir/chunk.h"
#include "ir/data.h"
#include "ir/interpret.h"
#include "ir/print.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace espalier {
namespace {

constexpr int kRanks = 3;

std::vector<Slice> inputs(const Builder& builder, std::int64_t unit) {
  std::vector<Slice> all;
  for (int rank = 0; rank < kRanks; ++rank) all.push_back(builder.input(rank, unit, 1));
  return all;
}

/// From `first` on, around.
std::vector<Slice> outputs(const Builder& builder, int first, std::int64_t unit) {
  std::vector<Slice> all;
  for (int i = 0; i < kRanks; ++i) {
    all.push_back(builder.output((first + i) % kRanks, unit, 1));
  }
  return all;
}

/// Each rank is the head of a unit.
Program allreduce(bool in_place) {
  Builder builder("switched", {Collective::allreduce, kRanks, 0, kRanks, in_place});
  for (int head = 0; head < kRanks; ++head) {
    builder.in_switch(outputs(builder, head, head), inputs(builder, head));
  }
  return builder.finish();
}

/// Every rank reads the sum for itself.
Program sums_of_their_own() {
  Builder builder("each", {Collective::allreduce, kRanks, 0, 1, false});
  for (int rank = 0; rank < kRanks; ++rank) {
    builder.in_switch(std::vector{builder.output(rank, 0, 1)}, inputs(builder, 0));
  }
  return builder.finish();
}

TEST(SwitchOps, ArePrintedAndRead) {
  Builder builder("switched", {Collective::allreduce, 2, 0, 2, false});
  builder.in_switch(std::vector{builder.output(0, 0, 2), builder.output(1, 0, 2)},
                    std::vector{builder.input(0, 0, 2), builder.input(1, 0, 2)},
                    {.lane = 3, .at = 1, .via = "nvswitch"});
  const Program program = builder.finish();
  const std::string text = print_program(program);
  EXPECT_EQ(text,
            "program switched\n"
            "collective allreduce\n"
            "ranks 2\n"
            "units 2\n"
            "0: r0.out[0:2], r1.out[0:2] <- r0.in[0:2] + r1.in[0:2] in switch at r1 lane 3 via "
            "nvswitch\n");
  EXPECT_TRUE(same_program(parse_program(text, "text"), program));
  Program other = program;
  other.sources[2].begin = 1;  // the further destination
  EXPECT_FALSE(same_program(other, program));
}

TEST(SwitchOps, WriteAllDestinations) {
  for (const bool in_place : {false, true}) {
    const Program program = allreduce(in_place);
    const Verification verification = verify(program);
    EXPECT_TRUE(verification.ok()) << verification.problems.front().message;
    EXPECT_TRUE(verification.order_consistent);
    EXPECT_TRUE(verification.combines_in_switch);
    constexpr std::int64_t kElements = 7;
    Memory memory = initial_memory(program, DataType::int32, ReduceOp::sum, kElements);
    interpret(program, DataType::int32, ReduceOp::sum, kElements, memory);
    EXPECT_EQ(count_wrong(program, DataType::int32, ReduceOp::sum, kElements, memory), 0);
    EXPECT_EQ(count_transfers(program), kRanks * 2 * (kRanks - 1));
  }
}

/// The switch may add up for one reader in another order than for the next.
TEST(SwitchOps, EachReadsInAnOrderOfItsOwn) {
  for (const ResultComparison comparison : {ResultComparison::exact, ResultComparison::random}) {
    const Verification verification = verify(sums_of_their_own(), {.comparison = comparison});
    EXPECT_TRUE(verification.ok());
    EXPECT_FALSE(verification.order_consistent);
    const Verification told = verify(allreduce(false), {.comparison = comparison});
    EXPECT_TRUE(told.ok() && told.order_consistent);
  }
}

TEST(SwitchOps, AddUpWhatTheyAreGiven) {
  Program twice = allreduce(false);
  twice.sources[1] = twice.sources[0];
  EXPECT_EQ(verify(twice).problems.front().rule, "R4");
  Program one_less = allreduce(false);
  one_less.sources.erase(one_less.sources.begin() + 1);
  one_less.ops[0].src_count -= 1;
  for (std::size_t id = 1; id < one_less.ops.size(); ++id) one_less.ops[id].src_begin -= 1;
  const Verification verification = verify(one_less);
  ASSERT_FALSE(verification.ok());
  EXPECT_EQ(verification.problems.front().rule, "R7");
}

TEST(SwitchOps, FurtherDestinationsRace) {
  Builder builder("race", {Collective::broadcast, kRanks, 0, 1, false});
  builder.in_switch(outputs(builder, 0, 0), std::vector{builder.input(0, 0, 1)});
  builder.copy(builder.output(2, 0, 1), builder.input(0, 0, 1), {.lane = 1});
  Program program = builder.finish();
  EXPECT_TRUE(verify(program).ok());  // the builder has ordered them
  program.dependencies.clear();
  program.ops[1].dep_count = 0;
  const Verification verification = verify(program);
  ASSERT_EQ(verification.problems.size(), 1U);
  EXPECT_EQ(verification.problems.front().rule, "R6");
  EXPECT_NE(verification.problems.front().message.find("r2.out[0]"), std::string::npos)
      << verification.problems.front().message;
}

TEST(SwitchOps, AreCutIntoPieces) {
  const Program whole = allreduce(false);
  const Program cut = chunk(whole, {.split = 4, .piece_units = 1});
  EXPECT_EQ(cut.ops.size(), 4 * whole.ops.size());
  for (const Op& op : cut.ops) {
    EXPECT_TRUE(op.in_switch);
    EXPECT_EQ(op.copy_count, kRanks - 1U);
  }
  EXPECT_TRUE(verify(cut).ok());
}

}  // namespace
}  // namespace espalier
