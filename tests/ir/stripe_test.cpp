// SPDX-License-Identifier: Apache-2.0
#include "ir/stripe.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "ir/builder.h"
#include "ir/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/ir/random_program.h"

namespace espalier {
namespace {

Striping striping(std::vector<int> host_of_rank, std::int64_t percent, std::int64_t pieces = 1) {
  Striping made;
  made.hosts = 1 + *std::max_element(host_of_rank.begin(), host_of_rank.end());
  made.host_of_rank = std::move(host_of_rank);
  made.host_percent = percent;
  made.pieces = pieces;
  return made;
}

/// Rank 0's message to ranks 1 and 2.
Program two_copies() {
  Builder b("two", {Collective::broadcast, 3, 0, 1, true});
  b.copy(b.output(1, 0, 1), b.input(0, 0, 1));
  b.copy(b.output(2, 0, 1), b.input(0, 0, 1), {.lane = 1});
  return b.finish();
}

TEST(Stripe, LeavesProgramsThatItDoesNotConcern) {
  const Program program = two_copies();
  EXPECT_TRUE(same_program(stripe(program, striping({0, 0, 0}, 0)), program));
  EXPECT_TRUE(same_program(stripe(program, striping({0, 1, 2}, 25)), program));
  EXPECT_TRUE(same_program(stripe(program, striping({-1, -1, 0}, 25)), program));
}

TEST(Stripe, ACopyGoesTwoWaysWithinASocket) {
  // A quarter takes the way through host memory 0: three units of four go straight. Rank 2 has
  // another host memory.
  EXPECT_EQ(print_program(stripe(two_copies(), striping({0, 0, 1}, 25))),
            "program two\n"
            "collective broadcast root 0\n"
            "ranks 3\n"
            "units 4\n"
            "in_place\n"
            "hosts 2\n"
            "0: r1.out[0:3] <- r0.out[0:3]\n"
            "1: h0.tmp[3] <- r0.out[3] lane 2\n"
            "2: r1.out[3] <- h0.tmp[3] lane 2 after 1\n"
            "3: r2.out[0:4] <- r0.out[0:4] lane 1\n");
}

TEST(Stripe, PiecesAreInAndOutAtOnce) {
  // 40 percent in two pieces: of five units three go straight, one each in a piece. Pieces follow
  // each other on the lanes into and out of host memory, and out only waits for in.
  Builder b("one", {Collective::broadcast, 2, 0, 1, true});
  b.copy(b.output(1, 0, 1), b.input(0, 0, 1));
  EXPECT_EQ(print_program(stripe(b.finish(), striping({0, 0}, 40, 2))),
            "program one\n"
            "collective broadcast root 0\n"
            "ranks 2\n"
            "units 5\n"
            "in_place\n"
            "hosts 1\n"
            "0: r1.out[0:3] <- r0.out[0:3]\n"
            "1: h0.tmp[3] <- r0.out[3] lane 1\n"
            "2: r1.out[3] <- h0.tmp[3] lane 1 after 1\n"
            "3: h0.tmp[4] <- r0.out[4] lane 1\n"
            "4: r1.out[4] <- h0.tmp[4] lane 1 after 3\n");
}

TEST(Stripe, WhatSharedALaneSharesOneOnTheWayThroughHostMemory) {
  Builder b("serial", {Collective::broadcast, 3, 0, 1, true});
  b.copy(b.output(1, 0, 1), b.input(0, 0, 1));
  b.copy(b.output(2, 0, 1), b.input(0, 0, 1));
  EXPECT_EQ(print_program(stripe(b.finish(), striping({0, 0, 0}, 100))),
            "program serial\n"
            "collective broadcast root 0\n"
            "ranks 3\n"
            "units 1\n"
            "in_place\n"
            "hosts 1\n"
            "0: h0.tmp[0] <- r0.out[0] lane 1\n"
            "1: r1.out[0] <- h0.tmp[0] lane 1 after 0\n"
            "2: h0.tmp[1] <- r0.out[0] lane 1\n"
            "3: r2.out[0] <- h0.tmp[1] lane 1 after 2\n");
}

TEST(Stripe, AReductionReadsFromHostMemory) {
  // Rank 0 reads rank 1 of its socket and rank 2 of the other one. Its own lanes for the two parts
  // differ, so that neither waits.
  Builder b("sum", {Collective::reduce, 3, 0, 1, false});
  b.combine(b.output(0, 0, 1), {b.input(0, 0, 1), b.input(1, 0, 1), b.input(2, 0, 1)});
  EXPECT_EQ(print_program(stripe(b.finish(), striping({0, 0, 1}, 50))),
            "program sum\n"
            "collective reduce root 0\n"
            "ranks 3\n"
            "units 2\n"
            "hosts 2\n"
            "0: r0.out[0] <- r0.in[0] + r1.in[0] + r2.in[0]\n"
            "1: h0.tmp[1] <- r1.in[1] lane 1\n"
            "2: r0.out[1] <- r0.in[1] + h0.tmp[1] + r2.in[1] lane 1 after 1\n");
}

TEST(Stripe, ScratchIsUsedAgain) {
  // Both copies of the pair take the same unit of host memory; the second one waits until the first
  // has left it.
  Builder b("again", {Collective::sendrecv, 2, 0, 1, false});
  b.copy(b.tmp(1, 0, 1), b.input(0, 0, 1));
  b.copy(b.output(1, 0, 1), b.input(0, 0, 1), {.lane = 1});
  b.copy(b.output(0, 0, 1), b.input(1, 0, 1));
  const Program striped = stripe(b.finish(), striping({0, 0}, 100));
  EXPECT_EQ(print_program(striped),
            "program again\n"
            "collective sendrecv\n"
            "ranks 2\n"
            "units 1\n"
            "hosts 1\n"
            "0: h0.tmp[0] <- r0.in[0] lane 2\n"
            "1: r1.tmp[0] <- h0.tmp[0] lane 2 after 0\n"
            "2: h0.tmp[0] <- r0.in[0] lane 3 after 0 1\n"
            "3: r1.out[0] <- h0.tmp[0] lane 3 after 2\n"
            "4: h0.tmp[1] <- r1.in[0] lane 2\n"
            "5: r0.out[0] <- h0.tmp[1] lane 4 after 4\n");
  EXPECT_TRUE(verify(striped).ok());
}

TEST(Stripe, OrderWithoutDataHoldsBetweenAllParts) {
  // Nothing but the explicit order makes the copy wait for the computation, or another one wait for
  // the copy.
  Builder b("ordered", {Collective::broadcast, 2, 0, 1, true});
  const OpId before = b.compute(1, 1e-3);
  const OpId copied = b.copy(b.output(1, 0, 1), b.input(0, 0, 1));
  b.after(copied, before);
  b.after(b.compute(1, 1e-3, {.lane = 1}), copied);
  EXPECT_EQ(print_program(stripe(b.finish(), striping({0, 0}, 50))),
            "program ordered\n"
            "collective broadcast root 0\n"
            "ranks 2\n"
            "units 2\n"
            "in_place\n"
            "hosts 1\n"
            "0: compute 0.001 at r1\n"
            "1: r1.out[0] <- r0.out[0] after 0\n"
            "2: h0.tmp[1] <- r0.out[1] lane 2 after 0\n"
            "3: r1.out[1] <- h0.tmp[1] lane 2 after 2\n"
            "4: compute 0.001 at r1 lane 1 after 1 3\n");
}

TEST(Stripe, RefusesWhatWouldBeTooLarge) {
  EXPECT_EQ(cannot_stripe(1 << 20, striping({0, 0}, 0)), std::nullopt);
  EXPECT_EQ(cannot_stripe((1 << 20) / 100, striping({0, 0}, 1)), std::nullopt);
  EXPECT_EQ(cannot_stripe((1 << 20) / 100 + 1, striping({0, 0}, 1)),
            "divided into parts of one percent, its message would have more than 1048576 units");
  EXPECT_EQ(cannot_stripe(1, striping(std::vector<int>(64, 0), 20)), std::nullopt);
  EXPECT_EQ(cannot_stripe(1, striping(std::vector<int>(65, 0), 20)),
            "copies through a host memory are possible for at most 64 GPUs of that memory");
}

/// What `random` draws for a program: any share, some ranks without host memory, the program's own
/// host memories where it has any.
Striping random_striping(std::mt19937_64& random, const Program& program) {
  const auto pick = [&](std::int64_t minimum, std::int64_t maximum) {
    return std::uniform_int_distribution<std::int64_t>(minimum, maximum)(random);
  };
  Striping made;
  made.hosts = program.hosts > 0 ? program.hosts : static_cast<int>(pick(1, 2));
  made.host_percent = std::vector<std::int64_t>{1, 10, 25, 50, 100}[pick(0, 4)];
  made.pieces = pick(1, 3);
  for (int rank = 0; rank < program.ranks(); ++rank) {
    made.host_of_rank.push_back(static_cast<int>(pick(-1, made.hosts - 1)));
  }
  return made;
}

TEST(Stripe, RandomProgramsComputeTheSameWithoutRaces) {
  int striped_programs = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Program whole = random_program(random, {.max_units = 4, .max_ops = 12});
    const Program striped = stripe(whole, random_striping(random, whole));
    if (same_program(whole, striped)) continue;
    ++striped_programs;
    const auto before = happens_before(striped);
    for (OpId b = 0; b < striped.ops.size(); ++b) {
      for (OpId a = 0; a < b; ++a) {
        if (!touch_same_units(striped, striped.ops[a], striped.ops[b])) continue;
        EXPECT_TRUE(before[b][a]) << "op " << b << " races with op " << a;
      }
    }
    // Elements that every unit of the finer program has the same number of.
    const std::int64_t elements = striped.contract.units;
    Memory expected = initial_memory(whole, DataType::int32, ReduceOp::sum, elements);
    Memory got = initial_memory(striped, DataType::int32, ReduceOp::sum, elements);
    interpret(whole, DataType::int32, ReduceOp::sum, elements, expected);
    interpret(striped, DataType::int32, ReduceOp::sum, elements, got);
    for (int rank = 0; rank < whole.ranks(); ++rank) {
      EXPECT_EQ(got.places[static_cast<std::size_t>(rank)],
                expected.places[static_cast<std::size_t>(rank)]);
    }
  }
  EXPECT_GT(striped_programs, 50);
}

}  // namespace
}  // namespace espalier
