// SPDX-License-Identifier: Apache-2.0
// Passes that bring programs into a form that other runtimes can express: they still do the same,
// and what was asked for is gone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ir/instances.h"
#include "ir/interpret.h"
#include "ir/print.h"
#include "ir/split_lanes.h"
#include "ir/stage_operands.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace espalier {
namespace {

Program parse(const std::string& text) { return parse_program(text, "test.esp"); }

/// A ring over three ranks, and a rank that adds up what the others have.
const char* const kRing =
    "program ring\ncollective allreduce\nranks 3\nunits 3\n"
    "0: r1.out[0] <- r1.in[0] + r0.in[0]\n1: r2.out[1] <- r2.in[1] + r1.in[1]\n"
    "2: r0.out[2] <- r0.in[2] + r2.in[2]\n3: r2.out[0] <- r2.in[0] + r1.out[0] after 0\n"
    "4: r0.out[1] <- r0.in[1] + r2.out[1] after 1\n5: r1.out[2] <- r1.in[2] + r0.out[2] after 2\n"
    "6: r0.out[0] <- r2.out[0] after 3\n7: r1.out[1] <- r0.out[1] after 4\n"
    "8: r2.out[2] <- r1.out[2] after 5\n9: r1.out[0] <- r0.out[0] after 6\n"
    "10: r2.out[1] <- r1.out[1] after 7\n11: r0.out[2] <- r2.out[2] after 8\n";
const char* const kStar =
    "program star\ncollective reduce root 2\nranks 4\nunits 2\nin_place\n"
    "0: r2.out[0:2] <- r0.out[0:2] + r1.out[0:2] + r2.out[0:2] + r3.out[0:2]\n";
const char* const kGather =
    "program gather\ncollective allgather\nranks 2\nunits 4\n"
    "0: r0.out[0:2] <- r0.in[0:2]\n1: r1.out[2:4] <- r1.in[0:2]\n"
    "2: r1.out[0:2] <- r0.in[0:2] lane 1\n3: r0.tmp[0:4] <- r1.out[0:4] after 1 2\n"
    "4: r0.out[2:4] <- r0.tmp[2:4] after 3\n";

void expect_right(const Program& program) {
  SCOPED_TRACE(print_program(program));
  const Verification verification = verify(program);
  for (const Diagnostic& problem : verification.problems) ADD_FAILURE() << render(problem);
  for (const std::int64_t elements : {1, 7, 100}) {
    Memory memory = initial_memory(program, DataType::float32, ReduceOp::sum, elements);
    interpret(program, DataType::float32, ReduceOp::sum, elements, memory);
    EXPECT_EQ(count_wrong(program, DataType::float32, ReduceOp::sum, elements, memory), 0);
  }
}

std::map<std::pair<PlaceId, int>, int> ops_of_lanes(const Program& program) {
  std::map<std::pair<PlaceId, int>, int> ops;
  for (const Op& op : program.ops) ++ops[{op.at, op.lane}];
  return ops;
}

TEST(Passes, OperandsAreStaged) {
  for (const char* text : {kRing, kStar, kGather}) {
    const Program program = parse(text);
    std::size_t staged = 0;
    const auto is_remote = [&](const Op& op, std::size_t i) {
      return op.src_count > 1 && program.sources_of(op)[i].place != op.at;
    };
    const Program local = stage_operands(program, is_remote, staged);
    expect_right(local);
    EXPECT_EQ(staged, text == kRing ? 6U : text == kStar ? 3U : 0U);
    EXPECT_EQ(local.ops.size(), program.ops.size() + staged);
    for (const Op& op : local.ops) {
      for (const Operand& source : local.sources_of(op)) {
        EXPECT_TRUE(op.src_count == 1 || source.place == op.at);
      }
    }
    EXPECT_EQ(count_transfers(local), count_transfers(program));
  }
}

TEST(Passes, InstancesShareTheMessage) {
  for (const char* text : {kRing, kStar, kGather}) {
    const Program program = parse(text);
    EXPECT_TRUE(same_program(instances(program, 1), program));
    for (const int count : {2, 5}) {
      const Program all = instances(program, count);
      expect_right(all);
      EXPECT_EQ(all.contract.units, program.contract.units * count);
      // One after the other, whatever blocks a slice spans.
      EXPECT_EQ(ops_of_lanes(all).size(), ops_of_lanes(program).size() * count);
    }
  }
  // The slice of two blocks becomes two ops of each instance.
  EXPECT_EQ(instances(parse(kGather), 3).ops.size(), 3U * 6);
}

TEST(Passes, LanesAreSplit) {
  for (const char* text : {kRing, kStar, kGather}) {
    const Program program = parse(text);
    for (const int most : {1, 2, 3}) {
      const Program split = split_lanes(program, most);
      expect_right(split);
      for (const auto& [lane, ops] : ops_of_lanes(split)) EXPECT_LE(ops, most);
      EXPECT_EQ(split.ops.size(), program.ops.size());
    }
    EXPECT_TRUE(same_program(split_lanes(program, 100), program));
  }
}

}  // namespace
}  // namespace espalier
