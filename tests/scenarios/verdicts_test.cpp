// SPDX-License-Identifier: Apache-2.0
#include "scenarios/verdicts.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/ir/mutants.h"
#include "tests/ir/sample_programs.h"

namespace espalier {
namespace {

std::shared_ptr<const Program> shared(Program program) {
  return std::make_shared<const Program>(std::move(program));
}

/// A program is known by all that the verifier looks at: a right one says nothing of those that
/// differ from it in anything.
TEST(Verdicts, AreThoseOfTheVerifier) {
  for (const Program& right : {ring_allreduce(3, false), ring_allreduce(4, true)}) {
    Verdicts verdicts;
    int wrong = 0;
    for (const Mutant& mutant : Mutator(right).all()) {
      EXPECT_TRUE(verdicts.of(shared(right)).ok());
      const Verification expected = verify(mutant.program);
      const Verification found = verdicts.of(shared(mutant.program));
      EXPECT_EQ(found.ok(), expected.ok()) << mutant.kind;
      EXPECT_EQ(found.order_consistent, expected.order_consistent) << mutant.kind;
      EXPECT_EQ(found.proof, expected.proof) << mutant.kind;
      EXPECT_EQ(found.combines_in_switch, expected.combines_in_switch) << mutant.kind;
      wrong += expected.ok() ? 0 : 1;
    }
    EXPECT_GT(wrong, 100);
  }
}

/// Folded programs of the same ops stand for different ones if they are repeated in another way.
TEST(Verdicts, KnowFoldsApart) {
  const Program whole = ring_allreduce(4, false);
  Program folded = whole;
  folded.fold.groups = 4;
  folded.fold.each = 1;
  folded.fold.adjacent = 1;
  folded.fold.dependency_groups.assign(folded.dependencies.size(), 0);
  Program other = folded;
  other.fold.dependency_groups.back() = 1;
  EXPECT_TRUE(same_program(folded, folded));
  EXPECT_FALSE(same_program(folded, whole));
  EXPECT_FALSE(same_program(folded, other));
}

/// Problems name lines, which programs that are the same otherwise need not share.
TEST(Verdicts, NameTheLinesOfTheProgramThatIsAskedAbout) {
  Verdicts verdicts;
  Program wrong = ring_allreduce(3, false);
  wrong.dependencies.front() = static_cast<OpId>(wrong.ops.size() - 1);
  for (const int first_line : {5, 50}) {
    wrong.lines.clear();
    for (std::size_t i = 0; i < wrong.ops.size(); ++i) {
      wrong.lines.push_back(first_line + static_cast<int>(i));
    }
    const Verification expected = verify(wrong);
    const Verification found = verdicts.of(shared(wrong));
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.problems.front().where.line, expected.problems.front().where.line);
    EXPECT_GE(found.problems.front().where.line, first_line);
  }
}

/// Of many programs the earliest are forgotten, and asked about again they have the same verdict.
TEST(Verdicts, ForgetTheEarliest) {
  Verdicts verdicts;
  for (int round = 0; round < 2; ++round) {
    for (int ranks = 2; ranks < 40; ++ranks) {
      EXPECT_TRUE(verdicts.of(shared(ring_allreduce(ranks, false))).ok()) << ranks;
      const std::size_t known = verdicts.programs();
      EXPECT_LE(known, 16U);
      EXPECT_TRUE(verdicts.of(shared(ring_allreduce(ranks, false))).ok()) << ranks;
      EXPECT_EQ(verdicts.programs(), known) << ranks;
    }
  }
  EXPECT_EQ(verdicts.programs(), 16U);
  // 2 x 362 steps of 363 ranks: more ops than are kept.
  EXPECT_TRUE(verdicts.of(shared(ring_allreduce(363, false))).ok());
  EXPECT_EQ(verdicts.programs(), 16U);
}

}  // namespace
}  // namespace espalier
