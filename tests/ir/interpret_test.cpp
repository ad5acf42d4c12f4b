// SPDX-License-Identifier: Apache-2.0
#include "ir/interpret.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "ir/builder.h"
#include "tests/ir/sample_programs.h"

namespace espalier {
namespace {

std::vector<std::byte>& bytes_of(Memory& memory, PlaceId place, Buffer buffer) {
  return memory.places[static_cast<std::size_t>(place)][static_cast<std::size_t>(buffer)];
}

float& element(Memory& memory, PlaceId place, Buffer buffer, std::size_t index) {
  return reinterpret_cast<float*>(bytes_of(memory, place, buffer).data())[index];
}

TEST(Interpret, InitialMemoryHasInputsAndPaintsTheRest) {
  Builder b("sample", {Collective::allgather, 2, 0, 4, false});
  const PlaceId host = b.add_host();
  b.copy(b.tmp(host, 0, 2), b.input(1, 0, 2));
  const Program program = b.finish();
  // 10 elements in 2 blocks of 5; inputs are a block, outputs two; the host's tmp is 2 of the 2
  // units of a block.
  Memory memory = initial_memory(program, DataType::float32, ReduceOp::sum, 10);
  ASSERT_EQ(memory.places.size(), 3u);
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<std::byte> input(5 * sizeof(float));
    fill_input(DataType::float32, ReduceOp::sum, 2, rank, 0, input);
    EXPECT_EQ(bytes_of(memory, rank, Buffer::in), input);
    EXPECT_EQ(bytes_of(memory, rank, Buffer::out),
              std::vector<std::byte>(10 * sizeof(float), std::byte{0xA5}));
    EXPECT_TRUE(bytes_of(memory, rank, Buffer::tmp).empty());
  }
  EXPECT_EQ(bytes_of(memory, host, Buffer::tmp).size(), 5 * sizeof(float));
}

TEST(Interpret, InPlaceInputsStandWhereTheContractPutsThem) {
  Builder b("sample", {Collective::allgather, 2, 0, 2, true});
  const Program program = b.finish();
  Memory memory = initial_memory(program, DataType::uint8, ReduceOp::sum, 6);
  std::vector<std::byte> expected(6, std::byte{0xA5});
  fill_input(DataType::uint8, ReduceOp::sum, 2, 1, 0, std::span(expected).subspan(3));
  EXPECT_EQ(bytes_of(memory, 1, Buffer::out), expected);
  EXPECT_TRUE(bytes_of(memory, 1, Buffer::in).empty());
}

TEST(Interpret, FoldsSourcesFromLeftToRight) {
  Builder b("fold", {Collective::allreduce, 3, 0, 1, false});
  b.combine(b.output(0, 0, 1), {b.input(0, 0, 1), b.input(1, 0, 1), b.input(2, 0, 1)});
  b.combine(b.output(1, 0, 1), {b.input(0, 0, 1), b.input(2, 0, 1), b.input(1, 0, 1)});
  const Program program = b.finish();
  Memory memory = initial_memory(program, DataType::float32, ReduceOp::sum, 1);
  element(memory, 0, Buffer::in, 0) = 16777216.0f;  // 2^24: adding 1 is lost
  element(memory, 1, Buffer::in, 0) = 1.0f;
  element(memory, 2, Buffer::in, 0) = -16777216.0f;
  interpret(program, DataType::float32, ReduceOp::sum, 1, memory);
  EXPECT_EQ(element(memory, 0, Buffer::out, 0), 0.0f);  // (2^24 + 1) - 2^24
  EXPECT_EQ(element(memory, 1, Buffer::out, 0), 1.0f);  // (2^24 - 2^24) + 1
}

TEST(Interpret, TheDestinationMayBeAnySource) {
  Builder b("self", {Collective::allreduce, 2, 0, 1, true});
  b.combine(b.output(1, 0, 1), {b.output(0, 0, 1), b.output(1, 0, 1), b.output(1, 0, 1)});
  const Program program = b.finish();
  Memory memory = initial_memory(program, DataType::float32, ReduceOp::sum, 2);
  element(memory, 0, Buffer::out, 1) = 3;
  element(memory, 1, Buffer::out, 1) = 5;
  interpret(program, DataType::float32, ReduceOp::sum, 2, memory);
  EXPECT_EQ(element(memory, 1, Buffer::out, 1), 13);  // 3 + 5 + 5
  EXPECT_EQ(element(memory, 0, Buffer::out, 1), 3);
}

TEST(Interpret, DependenciesMayPointForward) {
  Builder b("forward", {Collective::broadcast, 3, 0, 1, false});
  b.copy(b.output(2, 0, 1), b.output(1, 0, 1));  // 0, made to wait for op 1 below
  b.copy(b.output(1, 0, 1), b.input(0, 0, 1));   // 1
  b.copy(b.output(0, 0, 1), b.input(0, 0, 1));   // 2
  Program program = b.finish();
  program.dependencies = {1};
  for (Op& op : program.ops) op.dep_begin = op.dep_count = 0;
  program.ops[0].dep_count = 1;
  Memory memory = initial_memory(program, DataType::int32, ReduceOp::sum, 7);
  interpret(program, DataType::int32, ReduceOp::sum, 7, memory);
  EXPECT_EQ(count_wrong(program, DataType::int32, ReduceOp::sum, 7, memory), 0);
}

TEST(Interpret, AStuckProgramIsAnErrorThatNamesTheCycle) {
  Builder b("stuck", {Collective::sendrecv, 2, 0, 1, false});
  b.copy(b.output(1, 0, 1), b.input(0, 0, 1));
  b.copy(b.output(0, 0, 1), b.input(1, 0, 1));
  Program program = b.finish();
  program.dependencies = {1, 0};
  program.ops[0].dep_begin = 0;
  program.ops[1].dep_begin = 1;
  for (Op& op : program.ops) op.dep_count = 1;
  Memory memory = initial_memory(program, DataType::int32, ReduceOp::sum, 2);
  try {
    interpret(program, DataType::int32, ReduceOp::sum, 2, memory);
    FAIL() << "finished";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_EQ(error.diagnostics().at(0).message,
              "the program cannot finish: op 0 waits for op 1, op 1 waits for op 0");
  }
}

TEST(Interpret, EverySampleIsRightForEveryTypeOperatorAndSize) {
  for (const Program& program : sample_programs()) {
    for (const DataType type : all_data_types()) {
      for (const ReduceOp op : all_reduce_ops()) {
        for (const std::int64_t elements : {0, 1, 2, 13, 64, 101}) {
          Memory memory = initial_memory(program, type, op, elements);
          interpret(program, type, op, elements, memory);
          EXPECT_EQ(count_wrong(program, type, op, elements, memory), 0)
              << program.name << " " << to_string(type) << " " << to_string(op) << " " << elements;
        }
      }
    }
  }
}

TEST(Interpret, CountsWrongElementsOfResultsOnly) {
  const Program program = ring_allreduce(4, false);
  // 10 elements in 4 units: [0,2) [2,5) [5,7) [7,10).
  Memory memory = initial_memory(program, DataType::int32, ReduceOp::sum, 10);
  // Nothing has run: 0xA5A5A5A5 everywhere in 4 outputs of 10 elements.
  EXPECT_EQ(count_wrong(program, DataType::int32, ReduceOp::sum, 10, memory), 40);
  interpret(program, DataType::int32, ReduceOp::sum, 10, memory);
  bytes_of(memory, 2, Buffer::out)[4 * 3] ^= std::byte{1};
  bytes_of(memory, 3, Buffer::out)[4 * 9 + 3] ^= std::byte{0x80};
  bytes_of(memory, 3, Buffer::in)[0] ^= std::byte{1};
  EXPECT_EQ(count_wrong(program, DataType::int32, ReduceOp::sum, 10, memory), 2);
}

}  // namespace
}  // namespace espalier
