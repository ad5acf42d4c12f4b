// SPDX-License-Identifier: Apache-2.0
#include "scenarios/kept_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/ir/mutants.h"
#include "tests/ir/sample_programs.h"

namespace espalier {
namespace {

std::shared_ptr<const Program> as_shared(Program program) {
  return std::make_shared<const Program>(std::move(program));
}

Verification verdict_on(KeptPrograms& known, const Program& program) {
  return verdict_on(*known.shared(as_shared(program)));
}

/// A program is known by all that the verifier looks at: a right one says nothing of those that
/// differ from it in anything.
TEST(KeptPrograms, HaveTheVerdictOfTheVerifier) {
  for (const Program& right : {ring_allreduce(3, false), ring_allreduce(4, true)}) {
    KeptPrograms known;
    int wrong = 0;
    for (const Mutant& mutant : Mutator(right).all()) {
      EXPECT_TRUE(verdict_on(known, right).ok());
      const Verification expected = verify(mutant.program);
      const Verification found = verdict_on(known, mutant.program);
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
TEST(KeptPrograms, AreToldApartByFolds) {
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

/// The same program is one for all who hold it, with what is found out about it.
TEST(KeptPrograms, ShareWhatIsFoundOut) {
  KeptPrograms known;
  const auto first = known.shared(as_shared(ring_allreduce(4, false)));
  const auto second = known.shared(as_shared(ring_allreduce(4, false)));
  const auto other = known.shared(as_shared(ring_allreduce(4, true)));
  EXPECT_EQ(first->program, second->program);
  EXPECT_EQ(first->found, second->found);
  EXPECT_NE(first->program, other->program);
  EXPECT_NE(first->found, other->found);
  for (int ranks = 5; ranks < 40; ++ranks) known.shared(as_shared(ring_allreduce(ranks, false)));
  EXPECT_EQ(first->found, nullptr) << "for the latest alone";
}

/// Its ways are found once, for as many groups as are asked for.
TEST(KeptPrograms, KnowTheirWays) {
  KeptPrograms known;
  const auto kept = known.shared(as_shared(ring_allreduce(4, false)));
  const auto ways = known.ways(*kept->program, 1);
  EXPECT_EQ(known.ways(*kept->program, 1), ways);
  std::vector<std::pair<PlaceId, PlaceId>> pairs;
  for (const Ways::Way& way : ways->transfers) {
    pairs.emplace_back(way.from, way.to);
    EXPECT_EQ(way.via, -1);
    EXPECT_LT(way.first, kept->program->ops.size());
  }
  std::ranges::sort(pairs);
  EXPECT_EQ(pairs, (std::vector<std::pair<PlaceId, PlaceId>>{{0, 1}, {1, 2}, {2, 3}, {3, 0}}));
  EXPECT_EQ(ways->longest_units * 4, kept->program->contract.units);
  const Program unknown = ring_allreduce(4, false);
  EXPECT_NE(known.ways(unknown, 1), known.ways(unknown, 1));
  EXPECT_EQ(known.ways(unknown, 1)->transfers, ways->transfers);
}

/// What depends on the number of ranks alone is built once, whatever the machine.
TEST(KeptPrograms, AreBuiltOnce) {
  KeptPrograms known;
  const auto built = [&](const std::string& spec, int ranks, bool in_place, const Fold& fold = {}) {
    BuildRequest request;
    request.ranks = ranks;
    request.in_place = in_place;
    request.fold = fold;
    return known.built(parse_algorithm(spec), request);
  };
  const auto ring = built("ring", 4, false);
  BuildRequest request;
  request.ranks = 4;
  EXPECT_TRUE(same_program(*ring, build(parse_algorithm("ring"), request)));
  const std::vector<Fold> folds = espalier::folds(parse_algorithm("ring"), request);
  ASSERT_FALSE(folds.empty());
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(built("ring", 4, false), ring);
    EXPECT_NE(built("ring", 5, false), ring);
    EXPECT_NE(built("ring", 4, true), ring);
    EXPECT_NE(built("ring:directions=2", 4, false), ring);
    EXPECT_NE(built("ring", 4, false, folds.front()), ring);
    // The same in other words.
    EXPECT_EQ(built("ring:directions=1", 4, false), ring);
  }
  EXPECT_EQ(known.programs(), 5U);
}

/// Of many programs the earliest are forgotten, and asked about again they have the same verdict.
TEST(KeptPrograms, ForgetTheEarliest) {
  KeptPrograms known;
  for (int round = 0; round < 2; ++round) {
    for (int ranks = 2; ranks < 40; ++ranks) {
      EXPECT_TRUE(verdict_on(known, ring_allreduce(ranks, false)).ok()) << ranks;
      const std::size_t programs = known.programs();
      EXPECT_LE(programs, 32U);
      EXPECT_TRUE(verdict_on(known, ring_allreduce(ranks, false)).ok()) << ranks;
      EXPECT_EQ(known.programs(), programs) << ranks;
    }
  }
  EXPECT_EQ(known.programs(), 32U);
  // 2 x 362 steps of 363 ranks: more ops than are kept.
  EXPECT_TRUE(verdict_on(known, ring_allreduce(363, false)).ok());
  EXPECT_EQ(known.programs(), 32U);
}

}  // namespace
}  // namespace espalier
