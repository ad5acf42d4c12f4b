// SPDX-License-Identifier: Apache-2.0
#include "exec/lanes/message_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "exec/mpi/message_runner.h"
#include "ir/builder.h"
#include "tests/exec/local_network.h"
#include "tests/exec/test_programs.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kElements = 12;

MessagePlan plan_of(const Program& program, int process, std::int64_t elements = kElements,
                    const Scratch& scratch = {}) {
  const LanePrograms lowered = lower(program, elements, 4);
  return plan_messages(program, lowered, common_order(program, lowered),
                       processes_of_places(program), process, 4, scratch);
}

/// "send op 2 to 1", "receive op 2 from 0", "combine op 3 of 2"; then what it needs.
std::vector<std::string> listing(const MessagePlan& plan) {
  std::vector<std::string> lines;
  for (const MessageStep& step : plan.steps) {
    std::string line = "combine";
    if (step.kind == MessageStepKind::send) line = "send";
    if (step.kind == MessageStepKind::receive) line = "receive";
    line += " op " + std::to_string(step.op);
    if (step.kind == MessageStepKind::send) line += " to " + std::to_string(step.peer);
    if (step.kind == MessageStepKind::receive) line += " from " + std::to_string(step.peer);
    if (step.kind == MessageStepKind::combine) line += " of " + std::to_string(step.source_count);
    if (step.needs > 0) line += " needs " + std::to_string(step.needs);
    lines.push_back(line);
  }
  return lines;
}

TEST(MessagePlan, ACopyIsOneMessageWithoutScratchMemory) {
  for (const int at : {0, 1}) {  // pushed or pulled
    Builder builder("copy", test_contract(Collective::broadcast, 2, 1));
    builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1));
    builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1), {.at = at});
    const Program program = builder.finish();
    EXPECT_THAT(listing(plan_of(program, 0)), ElementsAre("combine op 0 of 1", "send op 1 to 1"));
    EXPECT_THAT(listing(plan_of(program, 1)), ElementsAre("receive op 1 from 0"));
    EXPECT_EQ(plan_of(program, 0).scratch_bytes, 0);
    EXPECT_EQ(plan_of(program, 1).scratch_bytes, 0);
  }
}

TEST(MessagePlan, OperandsComeToWhereTheyAreCombinedAndResultsGoWhereTheyBelong) {
  Builder builder("reduce", test_contract(Collective::reduce, 3, 1));
  const std::vector<Slice> parts{builder.input(0, 0, 1), builder.input(1, 0, 1),
                                 builder.input(2, 0, 1)};
  builder.combine(builder.output(0, 0, 1), parts, {.at = 1});
  const Program program = builder.finish();
  EXPECT_THAT(listing(plan_of(program, 0)), ElementsAre("send op 0 to 1", "receive op 0 from 1"));
  EXPECT_THAT(listing(plan_of(program, 1)),
              ElementsAre("receive op 0 from 0", "receive op 0 from 2", "combine op 0 of 3 needs 2",
                          "send op 0 to 0 needs 1"));
  EXPECT_THAT(listing(plan_of(program, 2)), ElementsAre("send op 0 to 1"));
}

TEST(MessagePlan, DependenciesAreThoseOnMemoryHere) {
  Builder builder("chain", test_contract(Collective::broadcast, 3, 1));
  builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.output(1, 0, 1), builder.output(0, 0, 1));
  builder.copy(builder.output(2, 0, 1), builder.output(1, 0, 1));
  const Program program = builder.finish();
  EXPECT_THAT(listing(plan_of(program, 0)),
              ElementsAre("combine op 0 of 1", "send op 1 to 1 needs 1"));
  EXPECT_THAT(listing(plan_of(program, 1)),
              ElementsAre("receive op 1 from 0", "send op 2 to 2 needs 1"));
  EXPECT_THAT(listing(plan_of(program, 2)), ElementsAre("receive op 2 from 1"));
}

TEST(MessagePlan, EndsOfMessagesMatchByTag) {
  const Program program = ring_program(4, false);
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      std::vector<std::pair<OpId, int>> sent;
      std::vector<std::pair<OpId, int>> received;
      for (const MessageStep& step : plan_of(program, from).steps) {
        if (step.kind == MessageStepKind::send && step.peer == to) {
          sent.emplace_back(step.op, step.tag);
        }
      }
      for (const MessageStep& step : plan_of(program, to).steps) {
        if (step.kind == MessageStepKind::receive && step.peer == from) {
          received.emplace_back(step.op, step.tag);
        }
      }
      EXPECT_EQ(sent, received) << from << " to " << to;
      EXPECT_EQ(sent.empty(), from == to);
    }
  }
}

TEST(MessagePlan, NothingIsSentOfNoElements) {
  const Program program = ring_program(4, false);
  EXPECT_THAT(plan_of(program, 0, 0).steps, IsEmpty());
  // One element of four units: all but one of them are empty.
  EXPECT_LT(plan_of(program, 0, 1).steps.size(), plan_of(program, 0, 4).steps.size());
}

TEST(MessagePlan, ScratchMemoryIsLimited) {
  const Program program = ring_program(4, false);
  const std::int64_t slot = plan_of(program, 0, 4000, {.bytes = 0}).scratch_bytes;
  EXPECT_EQ(slot, (1000 * 4 + 63) / 64 * 64);  // one slot is enough
  EXPECT_EQ(plan_of(program, 0, 4000, {.bytes = 3 * slot + 5}).scratch_bytes, 3 * slot);
  // An op needs a slot for each of the three others at once, however little is granted.
  EXPECT_EQ(plan_of(reduce_scatter_program(4), 0, 4000, {.bytes = 0}).scratch_bytes, 3 * slot);
}

TEST(MessagePlan, WhatIsCombinedComesInPieces) {
  Builder builder("reduce", test_contract(Collective::reduce, 3, 1));
  const std::vector<Slice> parts{builder.input(0, 0, 1), builder.input(1, 0, 1),
                                 builder.input(2, 0, 1)};
  builder.combine(builder.output(0, 0, 1), parts);
  builder.combine(builder.tmp(1, 0, 1), {builder.input(1, 0, 1), builder.input(1, 0, 1)});
  const Program program = builder.finish();
  // 12 elements: of 8 and of 4. A slot is free when what was in it has been combined.
  const Scratch scratch{.bytes = 0, .piece_bytes = 35};
  const MessagePlan plan = plan_of(program, 0, 12, scratch);
  EXPECT_THAT(listing(plan),
              ElementsAre("receive op 0 from 1", "receive op 0 from 2", "combine op 0 of 3 needs 2",
                          "receive op 0 from 1 needs 2", "receive op 0 from 2 needs 2",
                          "combine op 0 of 3 needs 3"));
  EXPECT_EQ(plan.steps[2].elements, 8);
  EXPECT_EQ(plan.steps[5].elements, 4);
  EXPECT_EQ(plan.steps[5].memory.bytes, 8 * 4);
  EXPECT_EQ(plan.sources_of(plan.steps[5])[0].bytes, 8 * 4);
  EXPECT_EQ(plan.scratch_bytes, 2 * 64);  // of 32 bytes for either, aligned
  EXPECT_THAT(listing(plan_of(program, 2, 12, scratch)),
              ElementsAre("send op 0 to 0", "send op 0 to 0"));
}

/// A slot is no larger than what comes, however long a piece may be: short messages have many.
TEST(MessagePlan, ShortOperandsHaveShortSlots) {
  const Program program = ring_program(4, false);
  const std::int64_t slot = plan_of(program, 0, 4000, {.bytes = 0}).scratch_bytes;
  const Scratch scratch{.bytes = 5 * slot, .piece_bytes = 1 << 20};
  EXPECT_EQ(plan_of(program, 0, 4000, scratch).scratch_bytes, 5 * slot);
}

TEST(MessagePlan, HostMemoriesAreWithTheirFirstUser) {
  Builder builder("staged", test_contract(Collective::allgather, 3, 3));
  const PlaceId first = builder.add_host();
  const PlaceId unused = builder.add_host();
  builder.copy(builder.tmp(first, 0, 1), builder.input(2, 0, 1));
  builder.copy(builder.output(1, 2, 1), builder.tmp(first, 0, 1));
  const Program program = builder.finish();
  const std::vector<int> homes = processes_of_places(program);
  EXPECT_EQ(homes[static_cast<std::size_t>(first)], 2);
  EXPECT_EQ(homes[static_cast<std::size_t>(unused)], 0);
}

TEST(MessagePlan, ACycleIsAnErrorThatNamesTheLanes) {
  Program program = ring_program(2, false);
  // The first op after the last one.
  program.ops[0].dep_begin = static_cast<std::uint32_t>(program.dependencies.size());
  program.ops[0].dep_count = 1;
  program.dependencies.push_back(static_cast<OpId>(program.ops.size() - 1));
  try {
    plan_of(program, 0);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::runtime);
    EXPECT_THAT(error.what(), HasSubstr("the program cannot continue"));
  }
}

/// Without any buffering and with as little scratch memory as can be, nobody is ever blocked.
TEST(MessagePlan, RunsInAnyOrder) {
  std::uint64_t seed = 1;
  for (const int ranks : {2, 3, 5, 8}) {
    for (const bool in_place : {false, true}) {
      for (const Program& program :
           {ring_program(ranks, in_place), tree_program(ranks, in_place),
            flat_program(ranks, in_place), fetch_program(Collective::alltoall, ranks),
            reduce_scatter_program(ranks)}) {
        for (const std::int64_t elements : {0, 1, 13, 1031}) {
          for (const Buffering buffering : {Buffering::none, Buffering::all}) {
            // As little as can be, some slots, and all that is wanted; whole and in pieces.
            for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{256}, Scratch{}.bytes}) {
              for (const std::int64_t piece_bytes : {0, 64}) {
                SCOPED_TRACE(program.name + " " + std::to_string(ranks) + " " +
                             std::to_string(elements) + " " + std::to_string(bytes) + " " +
                             std::to_string(piece_bytes));
                expect_messages_right(program, DataType::float32, ReduceOp::sum, elements,
                                      buffering, seed++,
                                      {.bytes = bytes, .piece_bytes = piece_bytes});
              }
            }
          }
        }
      }
    }
  }
}

/// Notes what has begun, and when it was looked what is over; combines are over at once, and
/// receives the first time that it is looked.
class NotedSteps : public StepCarrier {
 public:
  explicit NotedSteps(const MessagePlan& plan) : plan_(plan) {}
  bool begin(std::uint32_t step) override {
    const MessageStepKind kind = plan_.steps[step].kind;
    done += kind == MessageStepKind::send ? "s" : kind == MessageStepKind::receive ? "r" : "c";
    if (kind == MessageStepKind::receive) receiving_.push_back(step);
    return kind == MessageStepKind::combine;
  }
  void advance(std::uint32_t, std::vector<std::uint32_t>& over) override {
    done += ".";
    over.insert(over.end(), receiving_.begin(), receiving_.end());
    receiving_.clear();
  }
  std::string done;

 private:
  const MessagePlan& plan_;
  std::vector<std::uint32_t> receiving_;
};

// A library may copy what has been sent while it begins to receive it, and the other process, which
// has not been told of a send yet, would wait for that.
TEST(MessageRunner, BeginsToSendBeforeItReceives) {
  Builder builder("exchange", {.ranks = 2, .units = 1});
  builder.copy(builder.output(0, 0, 1), builder.input(1, 0, 1));
  builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1));
  const Program program = builder.finish();
  for (const int process : {0, 1}) {
    const MessagePlan plan = plan_of(program, process);
    NotedSteps steps(plan);
    MessageRunner runner(plan, steps);
    runner.start();
    runner.advance();
    EXPECT_EQ(steps.done, "sr.");
  }
}

TEST(MessageRunner, SendsWhatItHasCombinedBeforeItLooksForMessages) {
  Builder builder("sum and back", {.ranks = 2, .units = 1});
  builder.combine(builder.output(0, 0, 1), {builder.input(0, 0, 1), builder.input(1, 0, 1)});
  builder.copy(builder.output(1, 0, 1), builder.output(0, 0, 1));
  const MessagePlan plan = plan_of(builder.finish(), 0);
  NotedSteps steps(plan);
  MessageRunner runner(plan, steps);
  runner.start();
  runner.advance();
  runner.advance();
  EXPECT_EQ(steps.done, "r.cs.");
}

}  // namespace
}  // namespace espalier
