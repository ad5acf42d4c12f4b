// SPDX-License-Identifier: Apache-2.0
// Programs that go through a message round by round: written once, and verified once.
#include "ir/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "ir/builder.h"
#include "ir/print.h"
#include "ir/unfold.h"
#include "ir/verify.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 4;

/// A ring around all ranks for each of several rounds with a unit for every rank, and one with two.
struct Shape {
  int rounds = 5;
  bool has_last = true;
  bool is_folded = true;

  std::int64_t units() const { return kRanks * (rounds + (has_last ? 2 : 0)); }
  Contract contract() const { return {Collective::allreduce, kRanks, 0, units(), false}; }
  Fold fold() const {
    if (!is_folded) return {};
    Fold fold{.groups = kRanks, .each = 1, .adjacent = 1};
    Fold::Turns turns{.most = {.period = kRanks, .step = 1}};
    if (has_last) {
      turns.rest_begin = std::int64_t{kRanks} * rounds;
      turns.rest = {.period = 2 * kRanks, .step = 2};
    }
    fold.turns.fill(turns);
    return fold;
  }
};

void add_round(Builder& builder, std::int64_t begin, std::int64_t length) {
  for (int step = 1; step < kRanks; ++step) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::int64_t first = begin + (rank + kRanks - step) % kRanks * length;
      const int next = (rank + 1) % kRanks;
      const Slice held = step == 1 ? builder.input(rank, first, length)  //
                                   : builder.output(rank, first, length);
      builder.combine(builder.output(next, first, length),
                      {held, builder.input(next, first, length)});
    }
  }
  for (int step = 1; step < kRanks; ++step) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::int64_t first = begin + (rank + 1 + kRanks - step) % kRanks * length;
      builder.copy(builder.output((rank + 1) % kRanks, first, length),
                   builder.output(rank, first, length), {.lane = 1});
    }
  }
}

Program ring(const Shape& shape, bool repeats = true) {
  Builder builder("ring", shape.contract(), shape.fold());
  add_round(builder, 0, 1);
  if (repeats) {
    builder.repeat(kRanks, shape.rounds - 1);
  } else {
    for (int round = 1; round < shape.rounds; ++round) add_round(builder, kRanks * round, 1);
  }
  if (shape.has_last) add_round(builder, kRanks * shape.rounds, 2);
  return builder.finish();
}

std::string refusal(const Program& program) {
  const Verification verification = verify(program);
  return verification.ok() ? "" : verification.problems.front().message;
}

TEST(Rounds, RepeatedAreThoseBuiltOneByOne) {
  for (const bool is_folded : {false, true}) {
    for (const bool has_last : {false, true}) {
      const Shape shape{.has_last = has_last, .is_folded = is_folded};
      const Program expected = ring(shape, false);
      const Program found = ring(shape);
      EXPECT_EQ(found.ops, expected.ops);
      EXPECT_EQ(found.sources, expected.sources);
      EXPECT_EQ(found.dependencies, expected.dependencies);
      EXPECT_EQ(found.fold, expected.fold);
      EXPECT_EQ(refusal(found), "");
    }
  }
}

TEST(Rounds, OneStandsForAll) {
  for (const bool is_folded : {false, true}) {
    const auto one = with_one_round(ring({.is_folded = is_folded}));
    ASSERT_TRUE(one);
    const Program expected = ring({.rounds = 1, .is_folded = is_folded});
    EXPECT_EQ(one->contract, expected.contract);
    EXPECT_EQ(one->ops, expected.ops);
    EXPECT_EQ(one->sources, expected.sources);
    EXPECT_EQ(one->dependencies, expected.dependencies);
    EXPECT_EQ(one->fold, expected.fold);
  }
  EXPECT_FALSE(with_one_round(ring({.rounds = 2})));
  EXPECT_EQ(with_one_round(ring({.rounds = 3, .has_last = false}))->contract.units, kRanks);
}

TEST(Rounds, ThatHaveSomethingInCommonAreNone) {
  const Shape shape{.has_last = false};
  Program unit = ring(shape);  // of the round before, in every round
  for (std::size_t i = unit.sources.size() / shape.rounds; i < unit.sources.size(); ++i) {
    unit.sources[i].begin -= kRanks;
  }
  EXPECT_FALSE(with_one_round(unit));

  Program dependency = ring(shape);
  dependency.dependencies.back() = 0;
  EXPECT_FALSE(with_one_round(dependency));

  Program last = ring({});
  last.sources.back().begin = 0;
  EXPECT_FALSE(with_one_round(last));
}

// What all rounds do alike, but not by themselves.
TEST(Rounds, ThatOverlapAreNone) {
  Program beyond = ring({.has_last = false, .is_folded = false});
  beyond.contract.units *= 2;
  for (Op& op : beyond.ops) op.length += 1;
  EXPECT_FALSE(with_one_round(beyond));  // into the units of the next one

  // Scratch has its rounds, too, but folds need not turn it with the rest.
  for (const bool is_folded : {false, true}) {
    Program scratch = ring({.has_last = false, .is_folded = is_folded});
    for (Op& op : scratch.ops) op.dst.buffer = Buffer::tmp;
    EXPECT_EQ(find_rounds(scratch).has_value(), !is_folded);
  }

  // For ops of the next round, but in the last one.
  Program waiting = ring({.has_last = false, .is_folded = false});
  const std::size_t of_round = waiting.ops.size() / 5;
  for (std::size_t i = 0; i < waiting.dependencies.size() / 5 * 4; ++i) {
    waiting.dependencies[i] += static_cast<OpId>(of_round);
  }
  EXPECT_FALSE(with_one_round(waiting));
}

TEST(Rounds, NeedNotBeWholePeriodsOfTheFold) {
  Program program = ring({.has_last = false});
  for (Fold::Turns& turns : program.fold.turns) turns.most.period *= 5;
  EXPECT_FALSE(with_one_round(program));
}

/// A round moves a unit of every rank's block, all the way around. `by_groups`: the ops of the
/// first rank stand for those of all.
Program gathering_ring(int rounds, bool by_groups, bool rests) {
  const Contract contract{Collective::allgather, kRanks, 0, kRanks * rounds, false};
  Builder builder("ring", contract, by_groups ? turned_by_blocks(contract, kRanks) : Fold{});
  for (int round = 0; round < rounds; ++round) {
    for (int step = 1; step < kRanks; ++step) {
      for (int rank = 0; rank < (by_groups ? 1 : kRanks); ++rank) {
        const int block = (rank + kRanks + 1 - step) % kRanks;
        const std::int64_t unit = block * rounds + round;
        const Slice held =
            step == 1 ? builder.input(rank, round, 1) : builder.output(rank, unit, 1);
        const int next = (rank + 1) % kRanks;
        const Slice resting = builder.tmp(next, unit, 1);
        if (rests) builder.copy(resting, held, {.lane = 1});
        builder.copy(builder.output(next, unit, 1), rests ? resting : held);
      }
    }
  }
  return builder.finish();
}

TEST(Rounds, MayBePartsOfBlocks) {
  for (const bool by_groups : {false, true}) {
    for (const bool rests : {false, true}) {
      SCOPED_TRACE(testing::Message() << by_groups << rests);
      Program program = gathering_ring(5, by_groups, rests);
      const auto rounds = find_rounds(program);
      ASSERT_TRUE(rounds);
      EXPECT_EQ(rounds->count, 5U);
      EXPECT_EQ(rounds->units, 1U);
      EXPECT_EQ(rounds->ops, program.ops.size() / 5);
      EXPECT_FALSE(with_one_round(program));  // which would have shorter blocks

      if (by_groups) {  // parts of blocks are moved as well
        Program turned = program;
        for (Fold::Turns& turns : turned.fold.turns) turns.most = {.period = 2, .step = 1};
        EXPECT_FALSE(find_rounds(turned));
      }
      for (Op& op : program.ops) op.length = 2;  // of the next round
      EXPECT_FALSE(find_rounds(program));
    }
  }
}

/// What comes again from block to block goes on beyond the last one.
TEST(Rounds, AreNoWholeBlocks) {
  const Contract contract{Collective::allgather, kRanks, 0, kRanks * 4, false};
  Builder builder("blocks", contract, turned_by_blocks(contract, kRanks));
  for (int block = 1; block < kRanks; ++block) {
    builder.copy(builder.output(0, 4 * block, 4), builder.output(1, 4 * block, 4));
  }
  EXPECT_FALSE(find_rounds(builder.finish()));
}

/// What an op of a program with fewer rounds is in one with more of them.
TEST(Rounds, OpsFurtherOnAreThoseOfMoreRounds) {
  const auto expect_same = [](const Program& few, const Program& all) {
    const Rounds rounds = *find_rounds(few);
    const OpId more = find_rounds(all)->count - rounds.count;
    const std::int64_t longer = std::int64_t{more} * rounds.units;
    for (OpId id = 0; id < few.ops.size(); ++id) {
      const bool is_first = id < 2 * rounds.ops;  // and what comes after the others
      const OpId on = is_first ? 0 : more;
      const Program one = op_further_on(few, id, on * rounds.ops, on * rounds.units, longer);
      EXPECT_EQ(to_string(one, 0), to_string(all, id + on * rounds.ops));
    }
  };
  expect_same(ring({.is_folded = false}), ring({.rounds = 9, .is_folded = false}));
  expect_same(gathering_ring(3, false, true), gathering_ring(8, false, true));
}

TEST(Rounds, MistakesOfOneAreFound) {
  Program program = ring({});
  const std::size_t of_round = with_one_round(ring({.has_last = false}))->ops.size();
  Op& op = program.ops[3 * of_round - 1];
  ASSERT_GT(op.dep_count, 0u);
  op.dep_count = 0;
  EXPECT_THAT(refusal(program), HasSubstr("op " + std::to_string(3 * of_round - 1) +
                                          ": may run at the same time as op"));
}

TEST(Rounds, MistakesOfAllAreSaidOfTheProgramsOwnOps) {
  Program program = ring({.has_last = false});
  const std::size_t of_round = with_one_round(program)->ops.size();
  for (std::size_t id = of_round - 1; id < program.ops.size(); id += of_round) {
    ASSERT_GT(program.ops[id].dep_count, 0u);
    program.ops[id].dep_count = 0;
  }
  ASSERT_TRUE(with_one_round(program));
  const std::string of_second = "op " + std::to_string(2 * of_round - 1) + ": may run";
  EXPECT_TRUE(std::ranges::any_of(verify(program).problems, [&](const Diagnostic& problem) {
    return problem.message.starts_with(of_second);
  }));
}

}  // namespace
}  // namespace espalier
