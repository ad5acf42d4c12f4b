// SPDX-License-Identifier: Apache-2.0
#include "exec/host/host_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/interpret.h"
#include "tests/exec/test_programs.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Trial {
  Trial(const Program& program, std::int64_t elements, DataType type, ReduceOp op)
      : data{program, ElementLayout(program.contract, elements), type, op, 2},
        lowered(lower(program, elements, size_of(type))),
        memory(lowered) {
    fill_memory(data, memory);
  }
  void run(int threads = 2) {
    LaneRunner(data.program, lowered, combine_on(data, lowered, memory), threads).run(60);
  }
  HostData data;
  LanePrograms lowered;
  HostMemory memory;
};

void expect_same(const HostMemory& got, const Memory& expected, const std::string& what) {
  for (std::size_t place = 0; place < expected.places.size(); ++place) {
    for (const Buffer buffer : {Buffer::in, Buffer::out, Buffer::tmp}) {
      ASSERT_TRUE(std::ranges::equal(got.buffer(static_cast<PlaceId>(place), buffer),
                                     expected.places[place][static_cast<std::size_t>(buffer)]))
          << what << ", place " << place << " " << to_string(buffer);
    }
  }
}

TEST(HostData, MemoryBeginsAsTheInterpretersDoes) {
  const Program program = flat_program(3, false);
  const Trial run(program, 1009, DataType::float16, ReduceOp::sum);
  expect_same(run.memory, initial_memory(program, DataType::float16, ReduceOp::sum, 1009), "start");
}

// Every byte of every buffer, scratch included, as the interpreter leaves it.
TEST(HostData, ThreadsLeaveTheMemoryThatTheInterpreterLeaves) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const bool in_place : {false, true}) {
      for (const Program& program : {ring_program(ranks, in_place), tree_program(ranks, in_place),
                                     flat_program(ranks, in_place)}) {
        for (const std::int64_t elements : {0, 1, 7, 1009}) {
          for (const DataType type : all_data_types()) {
            const ReduceOp op = all_reduce_ops()[static_cast<std::size_t>(elements + ranks) % 4];
            Trial run(program, elements, type, op);
            run.run();
            Memory expected = initial_memory(program, type, op, elements);
            interpret(program, type, op, elements, expected);
            const std::string what = program.name + (in_place ? " in place, " : ", ") +
                                     std::to_string(ranks) + " ranks, " + std::to_string(elements) +
                                     " elements of " + std::string(to_string(type)) + ", " +
                                     std::string(to_string(op));
            expect_same(run.memory, expected, what);
            const Damage check = check_memory(run.data, run.memory);
            EXPECT_EQ(check.wrong, 0) << what;
            EXPECT_THAT(check.notes, IsEmpty()) << what;
          }
        }
      }
    }
  }
}

TEST(HostData, NothingRunIsAllWrong) {
  const Program program = ring_program(4, false);
  const Trial run(program, 1009, DataType::int32, ReduceOp::sum);
  EXPECT_EQ(check_memory(run.data, run.memory).wrong, 4 * 1009);
}

TEST(HostData, OneWrongElementIsFound) {
  // Broadcast results are compared with one expectation for all ranks, alltoall's rank by rank.
  for (const Collective collective : {Collective::broadcast, Collective::alltoall}) {
    const Program program = Builder("none", test_contract(collective, 3, 3)).finish();
    Trial run(program, 3 * 1009, DataType::uint8, ReduceOp::sum);
    for (int rank = 0; rank < 3; ++rank) {
      expected_output(run.data.type, run.data.op, program.contract, run.data.layout, rank, 0, 3,
                      run.memory.buffer(rank, Buffer::out));
    }
    EXPECT_EQ(check_memory(run.data, run.memory).wrong, 0);
    for (int rank = 0; rank < 3; ++rank) {
      std::byte& element = run.memory.buffer(rank, Buffer::out)[3 * 1009 - 1];
      element ^= std::byte{1};
      EXPECT_EQ(check_memory(run.data, run.memory).wrong, 1);
      element ^= std::byte{1};
    }
  }
}

TEST(HostData, OverwrittenInputsAreDamage) {
  const Program program = flat_program(2, false);
  Trial run(program, 1009, DataType::int32, ReduceOp::sum);
  run.run();
  std::memset(run.memory.buffer(1, Buffer::in).data() + 4 * 17, 0x5A, 4 * 5);
  const Damage check = check_memory(run.data, run.memory);
  EXPECT_EQ(check.wrong, 5);
  EXPECT_THAT(check.notes, ElementsAre("r1.in: 5 elements of the input were overwritten"));
}

// A program can't write outside of its buffers, but a back end with a wrong offset can.
TEST(HostData, WritesBesideABufferAreDamage) {
  const Program program = flat_program(2, false);
  Trial run(program, 1000, DataType::int32, ReduceOp::sum);
  // Op 2 copies both units, 4000 bytes, from host memory to all of r0.out.
  run.lowered.ops[2].dst.bytes += 8;
  // Op 3 does so for r1.out, whose first element it now writes 4 bytes early.
  run.lowered.ops[3].dst.bytes -= 4;
  run.run();
  const Damage check = check_memory(run.data, run.memory);
  EXPECT_THAT(check.notes, ElementsAre("r0.out: 8 bytes beside the buffer were overwritten",
                                       "r1.out: 4 bytes beside the buffer were overwritten"));
  // Two elements' and one element's worth of guards, and of results at least the elements that the
  // shifted copies did not reach: two of r0, one of r1.
  EXPECT_GE(check.wrong, 2 + 1 + 2 + 1);
  fill_memory(run.data, run.memory);
  EXPECT_THAT(check_memory(run.data, run.memory).notes, IsEmpty());
}

TEST(HostData, InputsAreFilledAgainInPlace) {
  const Program program = flat_program(3, true);
  Trial run(program, 1009, DataType::int64, ReduceOp::prod);
  for (int i = 0; i < 3; ++i) {
    fill_inputs(run.data, run.memory);
    run.run();
    EXPECT_EQ(check_memory(run.data, run.memory).wrong, 0);
  }
}

/// Bytes on huge pages of the mapping that has this address; nothing where the system does not say.
std::optional<std::size_t> huge_bytes_around(const std::byte* address) {
  std::ifstream file("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(file, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::size_t kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<std::uintptr_t>(address);
      is_here = begin <= at && at < end;
    } else if (is_here && std::sscanf(line.c_str(), "AnonHugePages: %zu kB", &kib) == 1) {
      return kib << 10;
    }
  }
  return std::nullopt;
}

/// Of large scratch memory, when small pages of the heap have been used and given back.
std::optional<std::size_t> huge_bytes_after_small_pages(std::size_t bytes) {
  // Everything is on the heap, which keeps its pages.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  constexpr std::size_t kSmall = 64 << 10;
  std::vector<std::unique_ptr<std::byte[]>> used;
  for (std::size_t i = 0; i < 4 * bytes / kSmall; ++i) {
    used.push_back(std::make_unique<std::byte[]>(kSmall));
  }
  used.clear();
  const HostMemory::Bytes memory = HostMemory::scratch(bytes);
  return huge_bytes_around(memory.get());
}

TEST(HostMemoryDeathTest, LargeBuffersAreOnHugePagesWhateverWasAllocatedBefore) {
  constexpr std::size_t kBytes = 8 << 20;
  const HostMemory::Bytes fresh = HostMemory::scratch(kBytes);
  if (huge_bytes_around(fresh.get()).value_or(0) < kBytes) {
    GTEST_SKIP() << "this computer has no huge pages to give";
  }
  // In a process of its own, as it changes what the heap does.
  EXPECT_EXIT(_exit(huge_bytes_after_small_pages(kBytes).value_or(0) >= kBytes ? 0 : 1),
              testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace espalier
