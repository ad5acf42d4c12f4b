// SPDX-License-Identifier: Apache-2.0
// Thread blocks against closed forms. Two GPUs, joined by a link that is faster than a block, so
// that times are sums of what blocks cost.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ir/block_program.h"
#include "tests/sim/machine.h"

namespace espalier {
namespace {

constexpr double kHold = 1.0e-6;     // of each op of a block
constexpr double kLanding = 0.5e-6;  // until what it did is seen
constexpr double kSend = 10e9;       // bytes per second
constexpr double kCopy = 20e9;
constexpr double kMega = 1e6;

/// Whole ops, FIFOs of 8 steps of 500 kB, loops of 2 MB, so that a piece takes four steps.
Profile interpreter() {
  Profile profile;
  profile.name = "interpreter";
  profile.interprets = true;
  profile.fifo_steps = 8;
  profile.dependence_s = 0.25e-6;
  Protocol& protocol = profile.protocol;
  protocol.hop_s[LinkClass::gpu_fabric] = kHold + kLanding;
  protocol.hold_s[LinkClass::gpu_fabric] = kHold;
  protocol.step_bytes = 0.5 * kMega;
  protocol.loop_bytes = 2 * kMega;
  protocol.block_gbps["other"] = kSend * 1e-9;
  protocol.copy_gbps["other"] = kCopy * 1e-9;
  return profile;
}

BlockProgram::Step step(const std::string& kind, int number, int chunks = 1) {
  const bool receives = kind == "r" || kind == "rcs" || kind == "rrc";
  const bool sends = kind == "s" || kind == "rcs";
  const int accesses = kind == "s" ? 0 : (kind == "rrc" || kind == "re" ? 3 : 2);
  return {kind, number, number + 10, receives, sends, accesses, chunks, {}};
}

/// A block of each of two GPUs, which send to and receive from one another.
BlockProgram pair(std::vector<BlockProgram::Step> first, std::vector<BlockProgram::Step> second,
                  int chunks) {
  BlockProgram program;
  program.file = "pair.xml";
  program.protocol = "Simple";
  program.chunks = chunks;
  program.gpus = {{{1, 1, 0, 1, std::move(first)}}, {{0, 0, 0, 2, std::move(second)}}};
  return program;
}

double time_s(const BlockProgram& blocks, const Profile& profile, double message_bytes) {
  const TestMachine machine(ring_machine(2, 100, 0), profile);
  RunOptions options;
  options.size_bytes = static_cast<std::int64_t>(message_bytes);
  Builder builder("pair", allreduce_contract(2));
  builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1));
  const Program program = builder.finish();
  return Simulator().run_blocks(program, blocks, machine.target(), options).time_s;
}

void expect_time(double found_s, double expected_s) {
  EXPECT_NEAR(found_s / expected_s, 1, 1e-9) << found_s << " instead of " << expected_s;
}

TEST(BlockInterpreter, SendsAndThenCopiesOutOfTheFifo) {
  // 1 MB: 1 us and 100 us in the sender; 0.5 us on the way; 1 us and 50 us in the receiver.
  expect_time(time_s(pair({step("s", 0)}, {step("r", 0)}, 1), interpreter(), kMega), 152.5e-6);
}

TEST(BlockInterpreter, APassIsPartOfWhatAnOpCosts) {
  // 8 kB of a pass take 0.8 us to send, within the op's 1 us; the receiver copies 992 kB.
  Profile profile = interpreter();
  profile.protocol.pass_bytes = 8000;
  // 0.2 + 100 (all bytes pass the link) + 0.5 + 1 + 49.6
  expect_time(time_s(pair({step("s", 0)}, {step("r", 0)}, 1), profile, kMega), 151.3e-6);
  // 1 kB: 1 us each, and 0.5.
  expect_time(time_s(pair({step("s", 0)}, {step("r", 0)}, 1), profile, 1000), 2.5e-6);
}

TEST(BlockInterpreter, SlicesAreUsedOneByOneAndEachCosts) {
  Profile profile = interpreter();
  profile.protocol.slices_per_op = 2;
  // The sender is done with halves at 51 and 102 us; the second is copied from 102.5 on, in 26.
  expect_time(time_s(pair({step("s", 0)}, {step("r", 0)}, 1), profile, kMega), 128.5e-6);
}

TEST(BlockInterpreter, StreamedPartsCostNothingOfTheirOwn) {
  Profile profile = interpreter();
  profile.protocol.streamed_parts = 2;
  // Halves at 51 and 101 us; the second is copied from 101.5 on, in 25.
  expect_time(time_s(pair({step("s", 0)}, {step("r", 0)}, 1), profile, kMega), 126.5e-6);
}

TEST(BlockInterpreter, WhatIsWrittenDrains) {
  Profile profile = interpreter();
  profile.protocol.drain_gbps = 50;  // 20 us more until it is seen
  expect_time(time_s(pair({step("s", 0)}, {step("r", 0)}, 1), profile, kMega), 172.5e-6);
}

TEST(BlockInterpreter, PassesOnByTurns) {
  // Three GPUs would be a chain; two pass a chunk there and back: rcs copies, then sends.
  // 101 + 0.5 + (51 + 101) + 0.5 + 51 us.
  const BlockProgram blocks = pair({step("s", 0), step("r", 1)}, {step("rcs", 0)}, 1);
  expect_time(time_s(blocks, interpreter(), kMega), 305e-6);
}

TEST(BlockInterpreter, SumsReadTwiceAndWriteOnce) {
  // 101.5 us until it is seen, 1 us, and three accesses of 1 MB at twice the copies' rate: 75 us.
  expect_time(time_s(pair({step("s", 0)}, {step("rrc", 0)}, 1), interpreter(), kMega), 177.5e-6);
}

TEST(BlockInterpreter, WaitsForOtherBlocksOfItsGpu) {
  BlockProgram blocks = pair({step("s", 0)}, {step("r", 0)}, 1);
  blocks.gpus[1].push_back({-1, -1, 0, 3, {step("re", 0)}});
  blocks.gpus[1][1].steps[0].awaits = {{0, 0}};
  // After 152.5: 0.25 us of waiting, 1 us, and three accesses: 75 us.
  expect_time(time_s(blocks, interpreter(), kMega), 228.75e-6);
}

TEST(BlockInterpreter, MovesSeveralChunksAPieceWhereTheyFit) {
  // Four chunks of 1 MB, two in a piece of 2 MB: each piece is one op.
  // The sender: 2 x 201 us; the last piece is copied in 101 us.
  const BlockProgram blocks = pair({step("s", 0, 4)}, {step("r", 0, 4)}, 4);
  expect_time(time_s(blocks, interpreter(), 4 * kMega), 503.5e-6);
}

TEST(BlockInterpreter, GoesOverItsStepsOnceForEachLoop) {
  // A chunk of 5 MB: loops of 2, 2 and 1 MB. The sender is faster than nobody: 201 + 201 + 101 us,
  // and the last one is copied in 51.
  const BlockProgram blocks = pair({step("s", 0)}, {step("r", 0)}, 1);
  expect_time(time_s(blocks, interpreter(), 5 * kMega), 554.5e-6);
}

TEST(BlockInterpreter, TakesFurtherLoopsToLastAsLongAsThoseBefore) {
  // 10 000 loops of 2 MB, of which 64 are simulated: 201 us each, and 101.5 for the last copy.
  const BlockProgram blocks = pair({step("s", 0)}, {step("r", 0)}, 1);
  expect_time(time_s(blocks, interpreter(), 20'000 * kMega), 10'000 * 201e-6 + 101.5e-6);
}

TEST(BlockInterpreter, SendersWaitForRoomInTheFifo) {
  // A FIFO takes two pieces. The receiver copies at a tenth of the rate: 1001 us for each of three;
  // the sender has room for the third when the first is read, and is done long before the second.
  Profile profile = interpreter();
  profile.protocol.copy_gbps["other"] = 2;
  const BlockProgram blocks = pair({step("s", 0, 3)}, {step("r", 0, 3)}, 3);
  expect_time(time_s(blocks, profile, 6 * kMega), 201e-6 + 0.5e-6 + 3 * 1001e-6);
  // Where the FIFO takes one, it sends the next one only when that is read.
  profile.fifo_steps = 4;
  expect_time(time_s(blocks, profile, 6 * kMega), 3 * (201e-6 + 0.5e-6 + 1001e-6) + 2 * 0.5e-6);
}

TEST(BlockInterpreter, HangsWhereBothSendMoreThanAFifoTakes) {
  const auto exchange = [](int chunks) {
    return pair({step("s", 0, chunks), step("r", 1, chunks)},
                {step("s", 0, chunks), step("r", 1, chunks)}, chunks);
  };
  // Two chunks of 2 MB fill the FIFO: 402 us, then copies of 101 each, the first of which is there.
  expect_time(time_s(exchange(2), interpreter(), 4 * kMega), 604.5e-6 - 0.5e-6);
  try {
    time_s(exchange(3), interpreter(), 6 * kMega);
    FAIL() << "it does not hang";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::runtime);
    ASSERT_EQ(error.diagnostics().size(), 3U);
    EXPECT_EQ(error.diagnostics()[0].message,
              "the algorithm hangs: 2 of 2 thread blocks never end");
    EXPECT_EQ(error.diagnostics()[1].message,
              "gpu 0, thread block 0, step 0 (s) waits for room in its FIFO to gpu 1, which nobody "
              "empties before gpu 1, thread block 0, step 0 (s) is done");
    EXPECT_EQ(error.diagnostics()[1].where.file, "pair.xml");
    EXPECT_EQ(error.diagnostics()[1].where.line, 10);
  }
  // Three chunks of 1 MB are two pieces.
  EXPECT_GT(time_s(exchange(3), interpreter(), 3 * kMega), 0);
}

TEST(BlockInterpreter, AnEmptyMessageCostsWhatItsOpsCost) {
  expect_time(time_s(pair({step("s", 0)}, {step("r", 0)}, 1), interpreter(), 0), 2.5e-6);
}

TEST(BlockInterpreter, EnginesAgree) {
  const BlockProgram blocks = pair({step("s", 0, 3), step("r", 1, 3)}, {step("rcs", 0, 3)}, 3);
  const TestMachine machine(ring_machine(2, 15, 0), interpreter());
  Builder builder("pair", allreduce_contract(2));
  builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1));
  const Program program = builder.finish();
  RunOptions options;
  options.size_bytes = 7'000'001;
  std::vector<double> times_s;
  for (const SimEngine engine : {SimEngine::classes, SimEngine::simgrid}) {
    options.engine = engine;
    times_s.push_back(Simulator().run_blocks(program, blocks, machine.target(), options).time_s);
  }
  EXPECT_NEAR(times_s[0] / times_s[1], 1, 1e-9);
}

}  // namespace
}  // namespace espalier
