// SPDX-License-Identifier: Apache-2.0
#include "exec/lanes/lowering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/builder.h"
#include "tests/exec/test_programs.h"

namespace espalier {
namespace {

using testing::ElementsAre;

// "wait 0", "combine 3", ... of one lane.
std::vector<std::string> words(const LanePrograms& lowered, std::size_t lane) {
  static constexpr const char* kNames[] = {"wait", "combine", "compute", "record"};
  std::vector<std::string> result;
  for (const Command& command : lowered.commands_of(lowered.lanes[lane])) {
    result.push_back(std::string(kNames[static_cast<int>(command.kind)]) + " " +
                     std::to_string(command.index));
  }
  return result;
}

TEST(Lowering, EventsOnlyWhereAnotherLaneNeedsThem) {
  Builder builder("test", test_contract(Collective::allreduce, 2, 1));
  // Each rank sends its input to the other's scratch (pushed by the sender: lane 0 of r0 and r1),
  // and adds what it got to its own.
  builder.copy(builder.tmp(1, 0, 1), builder.input(0, 0, 1));  // 0 at r0
  builder.copy(builder.tmp(0, 0, 1), builder.input(1, 0, 1));  // 1 at r1
  builder.combine(builder.output(0, 0, 1),
                  {builder.input(0, 0, 1), builder.tmp(0, 0, 1)});  // 2 at r0
  builder.combine(builder.output(1, 0, 1),
                  {builder.tmp(1, 0, 1), builder.input(1, 0, 1)});  // 3 at r1
  const LanePrograms lowered = lower(builder.finish(), 10, 4);
  ASSERT_EQ(lowered.lanes.size(), 2U);
  EXPECT_EQ(lowered.lanes[0].place, 0);
  EXPECT_EQ(lowered.lanes[1].place, 1);
  EXPECT_THAT(words(lowered, 0), ElementsAre("combine 0", "record 0", "wait 1", "combine 2"));
  EXPECT_THAT(words(lowered, 1), ElementsAre("combine 1", "record 1", "wait 0", "combine 3"));
  EXPECT_THAT(lowered.event_ops, ElementsAre(0, 1));
}

TEST(Lowering, WaitsForTheLastOpOfALaneAndOnlyOnce) {
  Builder builder("test", test_contract(Collective::allreduce, 2, 4));
  // Four copies on one lane of r0 into r1's scratch; then r1 uses 1, 0 and 3 in this order, on one
  // lane: the wait for 1 covers 0, the wait for 3 is needed.
  for (int i = 0; i < 4; ++i) builder.copy(builder.tmp(1, i, 1), builder.input(0, i, 1));
  const OpOptions mine{.at = 1};
  builder.copy(builder.output(1, 1, 1), builder.tmp(1, 1, 1), mine);  // 4
  builder.copy(builder.output(1, 0, 1), builder.tmp(1, 0, 1), mine);  // 5
  builder.copy(builder.output(1, 3, 1), builder.tmp(1, 3, 1), mine);  // 6
  const LanePrograms lowered = lower(builder.finish(), 4, 4);
  EXPECT_THAT(words(lowered, 0), ElementsAre("combine 0", "combine 1", "record 0", "combine 2",
                                             "combine 3", "record 1"));
  EXPECT_THAT(words(lowered, 1),
              ElementsAre("wait 0", "combine 4", "combine 5", "wait 1", "combine 6"));
}

TEST(Lowering, OneOpNeedingSeveralOpsOfALaneWaitsForTheLast) {
  Program program;
  program.contract = test_contract(Collective::allreduce, 2, 1);
  add_marker(program, 0, {});
  add_marker(program, 0, {});
  add_marker(program, 0, {0});        // given by the lane
  add_marker(program, 1, {0, 2, 1});  // 2 is the last of lane r0
  add_marker(program, 1, {1});        // waited for already
  const LanePrograms lowered = lower(program, 1, 4);
  EXPECT_THAT(words(lowered, 0), ElementsAre("compute 0", "compute 1", "compute 2", "record 0"));
  EXPECT_THAT(words(lowered, 1), ElementsAre("wait 0", "compute 3", "compute 4"));
}

TEST(Lowering, LanesOfAPlaceAreSeparate) {
  Builder builder("test", test_contract(Collective::allreduce, 1, 1));
  builder.copy(builder.tmp(0, 0, 1), builder.input(0, 0, 1), {.lane = 7});   // 0
  builder.copy(builder.output(0, 0, 1), builder.tmp(0, 0, 1), {.lane = 2});  // 1
  const LanePrograms lowered = lower(builder.finish(), 1, 1);
  ASSERT_EQ(lowered.lanes.size(), 2U);
  EXPECT_EQ(lowered.lanes[0].lane, 2);
  EXPECT_EQ(lowered.lanes[1].lane, 7);
  EXPECT_THAT(words(lowered, 0), ElementsAre("wait 0", "combine 1"));
  EXPECT_THAT(words(lowered, 1), ElementsAre("combine 0", "record 0"));
}

TEST(Lowering, OffsetsAndCountsFollowTheElementLayout) {
  // 10 elements in 4 units: boundaries floor(10 u / 4) = 0, 2, 5, 7, 10. Elements of 2 bytes.
  Builder builder("test", test_contract(Collective::allreduce, 2, 4));
  const PlaceId host = builder.add_host();
  builder.copy(builder.tmp(host, 1, 2), builder.input(0, 1, 2));   // 0: elements [2, 7)
  builder.copy(builder.output(1, 1, 2), builder.tmp(host, 1, 2));  // 1
  builder.copy(builder.tmp(host, 7, 1), builder.input(1, 3, 1));   // 2: scratch beyond one message
  const LanePrograms lowered = lower(builder.finish(), 10, 2);
  EXPECT_EQ(lowered.sources[0], (BufferOffset{0, Buffer::in, 4}));
  EXPECT_EQ(lowered.ops[0].dst, (BufferOffset{host, Buffer::tmp, 4}));
  EXPECT_EQ(lowered.ops[0].elements, 5);
  EXPECT_EQ(lowered.ops[1].dst, (BufferOffset{1, Buffer::out, 4}));
  // Unit 7 is unit 3 of the second message's worth: element 10 + 7 = 17, 3 elements, to byte 40.
  EXPECT_EQ(lowered.ops[2].dst, (BufferOffset{host, Buffer::tmp, 34}));
  EXPECT_EQ(lowered.ops[2].elements, 3);
  EXPECT_THAT(lowered.buffer_bytes,
              ElementsAre(ElementsAre(20, 20, 0), ElementsAre(20, 20, 0), ElementsAre(0, 0, 40)));
}

TEST(Lowering, BufferSizesAreKnownWithoutIt) {
  for (const bool in_place : {false, true}) {
    for (const Program& program :
         {ring_program(5, in_place), tree_program(4, in_place), flat_program(3, in_place)}) {
      for (const std::int64_t elements : {0, 1, 7, 1009}) {
        const LanePrograms lowered = lower(program, elements, 4);
        const auto sizes = buffer_sizes(program, ElementLayout(program.contract, elements), 4);
        ASSERT_EQ(sizes.size(), lowered.buffer_bytes.size());
        for (std::size_t place = 0; place < sizes.size(); ++place) {
          for (std::size_t buffer = 0; buffer < 3; ++buffer) {
            EXPECT_EQ(sizes[place][buffer], lowered.buffer_bytes[place][buffer]) << program.name;
          }
        }
      }
    }
  }
}

TEST(Lowering, BufferSizesMayBeMoreThan64BitsCount) {
  // A message of one unit, and 2^20 of it as scratch.
  Builder builder("large", test_contract(Collective::allreduce, 1, 1));
  builder.copy(builder.tmp(0, (1 << 20) - 1, 1), builder.input(0, 0, 1));
  const Program program = builder.finish();
  const std::int64_t elements = std::int64_t{1} << 50;
  const auto sizes = buffer_sizes(program, ElementLayout(program.contract, elements), 4);
  EXPECT_EQ(sizes[0][static_cast<std::size_t>(Buffer::tmp)], 0x1p72);
}

TEST(Lowering, ItsBytesAreCountedBeforeIt) {
  for (const Program& program : {ring_program(5, false), flat_program(3, false)}) {
    const LanePrograms lowered = lower(program, 100, 4);
    const std::size_t bytes =
        lowered.commands.size() * sizeof(Command) + lowered.event_ops.size() * sizeof(OpId) +
        lowered.ops.size() * sizeof(LoweredOp) + lowered.sources.size() * sizeof(BufferOffset);
    EXPECT_LE(static_cast<double>(bytes), lowered_bytes(program));
    EXPECT_LE(lowered_bytes(program), 2 * static_cast<double>(bytes));
  }
}

TEST(Lowering, NoElements) {
  Builder builder("test", test_contract(Collective::allreduce, 1, 3));
  builder.copy(builder.output(0, 0, 3), builder.input(0, 0, 3));
  const LanePrograms lowered = lower(builder.finish(), 0, 8);
  EXPECT_EQ(lowered.ops[0].elements, 0);
  EXPECT_THAT(lowered.buffer_bytes, ElementsAre(ElementsAre(0, 0, 0)));
}

TEST(Lowering, NoOps) {
  const LanePrograms lowered =
      lower(Builder("test", test_contract(Collective::allreduce, 1, 1)).finish(), 5, 4);
  EXPECT_TRUE(lowered.lanes.empty());
  EXPECT_TRUE(lowered.commands.empty());
}

}  // namespace
}  // namespace espalier
