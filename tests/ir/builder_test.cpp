// SPDX-License-Identifier: Apache-2.0
#include "ir/builder.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/ir/random_program.h"

namespace espalier {
namespace {

constexpr Contract kFourRanks{Collective::allreduce, 4, 0, 8, false};

std::vector<OpId> dependencies(const Program& program, OpId op) {
  const auto found = program.dependencies_of(program.ops[op]);
  return {found.begin(), found.end()};
}

TEST(Builder, ReadAfterWrite) {
  Builder b("raw", kFourRanks);
  b.copy(b.output(1, 0, 4), b.input(0, 0, 4));   // 0, pushed by r0
  b.copy(b.output(2, 2, 4), b.output(1, 2, 4));  // 1 reads units 2, 3 of what 0 wrote
  b.copy(b.output(3, 4, 4), b.output(1, 4, 4));  // 2 reads none of it, and is ordered by r1's lane
  const Program program = b.finish();
  EXPECT_EQ(dependencies(program, 0), std::vector<OpId>{});
  EXPECT_EQ(dependencies(program, 1), std::vector<OpId>{0});
  EXPECT_EQ(dependencies(program, 2), std::vector<OpId>{});
}

TEST(Builder, WriteAfterReadOfEveryReaderSinceTheWrite) {
  Builder b("war", kFourRanks);
  const Slice shared = b.tmp(0, 0, 1);
  b.copy(b.tmp(1, 0, 1), shared, {.at = 1});      // 0
  b.copy(b.tmp(2, 0, 1), shared, {.at = 2});      // 1
  b.copy(b.tmp(3, 0, 1), shared, {.at = 3});      // 2
  b.copy(shared, b.input(0, 0, 1));               // 3 must wait for all three
  b.copy(shared, b.input(0, 0, 1), {.lane = 1});  // 4 for 3 only: nobody has read since
  const Program program = b.finish();
  EXPECT_EQ(dependencies(program, 3), (std::vector<OpId>{0, 1, 2}));
  EXPECT_EQ(dependencies(program, 4), std::vector<OpId>{3});
}

TEST(Builder, WriteAfterWrite) {
  Builder b("waw", kFourRanks);
  b.copy(b.output(3, 0, 2), b.input(0, 0, 2));  // 0
  b.copy(b.output(3, 2, 2), b.input(1, 2, 2));  // 1
  b.copy(b.output(3, 1, 2), b.input(2, 1, 2));  // 2 overwrites a part of both
  const Program program = b.finish();
  EXPECT_EQ(dependencies(program, 1), std::vector<OpId>{});
  EXPECT_EQ(dependencies(program, 2), (std::vector<OpId>{0, 1}));
}

TEST(Builder, LaneOrderReplacesDependencies) {
  Builder b("lanes", kFourRanks);
  b.copy(b.tmp(0, 0, 1), b.input(0, 0, 1));                                          // 0 at r0
  b.copy(b.tmp(0, 8, 1), b.input(0, 0, 1));                                          // 1 at r0
  b.combine(b.output(1, 0, 1), {b.input(1, 0, 1), b.tmp(0, 0, 1), b.tmp(0, 8, 1)});  // 2 at r1
  b.copy(b.output(2, 0, 1), b.tmp(0, 8, 1));                                         // 3 at r0
  b.copy(b.output(3, 0, 1), b.tmp(0, 8, 1), {.lane = 5});                            // 4 at r0
  const Program program = b.finish();
  // 2 reads what 0 and 1 wrote, but 1 comes after 0 on its lane.
  EXPECT_EQ(dependencies(program, 2), std::vector<OpId>{1});
  EXPECT_EQ(dependencies(program, 3), std::vector<OpId>{});
  EXPECT_EQ(dependencies(program, 4), std::vector<OpId>{1});
}

TEST(Builder, AnOpMayWriteWhatItReads) {
  Builder b("accumulate", kFourRanks);
  const Slice sum = b.output(0, 0, 1);
  b.copy(sum, b.input(0, 0, 1));                            // 0 at r0
  b.copy(b.tmp(1, 0, 1), sum, {.at = 1});                   // 1 at r1 reads it
  b.combine(sum, {sum, b.input(2, 0, 1)}, {.at = 2});       // 2 waits for the reader too
  b.combine(sum, {sum, b.input(3, 0, 1), sum}, {.at = 3});  // 3 for 2 only
  const Program program = b.finish();
  EXPECT_EQ(dependencies(program, 2), (std::vector<OpId>{0, 1}));
  EXPECT_EQ(dependencies(program, 3), std::vector<OpId>{2});
}

TEST(Builder, CopyOntoItselfIsWhoeverWroteThere) {
  Builder b("self", kFourRanks);
  EXPECT_EQ(b.copy(b.output(0, 0, 2), b.output(0, 0, 2)), Builder::kNone);
  b.copy(b.output(0, 0, 1), b.input(1, 0, 1));
  b.copy(b.output(0, 1, 1), b.input(2, 1, 1));
  EXPECT_EQ(b.copy(b.output(0, 0, 1), b.output(0, 0, 1)), 0u);
  EXPECT_EQ(b.copy(b.output(0, 0, 2), b.output(0, 0, 2)), 1u);
  EXPECT_EQ(b.copy(b.output(0, 4, 2), b.output(0, 4, 2)), Builder::kNone);
  EXPECT_EQ(b.finish().ops.size(), 2u);
}

TEST(Builder, WhoCarriesAnOpOut) {
  Builder b("at", kFourRanks);
  const PlaceId host = b.add_host();
  EXPECT_EQ(host, 4);
  b.copy(b.tmp(1, 0, 1), b.input(0, 0, 1));
  b.combine(b.output(2, 0, 1), {b.input(0, 0, 1), b.input(1, 0, 1)});
  b.copy(b.tmp(host, 0, 1), b.input(3, 0, 1), {.at = host});
  b.copy(b.output(0, 0, 1), b.tmp(host, 0, 1));
  b.compute(3, 0.5, {.lane = 7});
  const Program program = b.finish();
  EXPECT_EQ(program.ops[0].at, 0);
  EXPECT_EQ(program.ops[1].at, 2);
  EXPECT_EQ(program.ops[2].at, host);
  EXPECT_EQ(program.ops[3].at, host);
  EXPECT_EQ(program.ops[4].at, 3);
  EXPECT_EQ(program.ops[4].lane, 7);
  EXPECT_EQ(program.duration_s(program.ops[4]), 0.5);
}

TEST(Builder, AfterAddsOrderThatDataFlowDoesNotShow) {
  Builder b("after", kFourRanks);
  const OpId a = b.copy(b.output(1, 0, 1), b.input(0, 0, 1));
  const OpId c = b.copy(b.output(2, 0, 1), b.input(1, 0, 1));
  const OpId d = b.copy(b.output(3, 0, 1), b.output(1, 0, 1));
  b.after(c, a);
  b.after(c, Builder::kNone);
  b.after(d, c);  // the lane of r1 orders them already
  const Program program = b.finish();
  EXPECT_EQ(dependencies(program, a), std::vector<OpId>{});
  EXPECT_EQ(dependencies(program, c), std::vector<OpId>{a});
  EXPECT_EQ(dependencies(program, d), std::vector<OpId>{a});
}

TEST(Builder, AfterReplacesWhatItImplies) {
  Builder b("after", kFourRanks);
  b.copy(b.output(1, 0, 1), b.input(0, 0, 1));                     // 0 at r0
  const OpId later = b.copy(b.output(2, 1, 1), b.input(0, 1, 1));  // 1 at r0
  const OpId reader =
      b.copy(b.output(3, 0, 1), b.output(1, 0, 1), {.at = 3});  // 2 reads what 0 wrote
  b.after(reader, later);
  EXPECT_EQ(dependencies(b.finish(), reader), std::vector<OpId>{later});
}

TEST(Builder, RegionsFollowTheContract) {
  Builder in_place("in_place", {Collective::allgather, 3, 0, 6, true});
  EXPECT_EQ(in_place.input(2, 1, 1), (Slice{2, Buffer::out, 5, 1}));
  EXPECT_EQ(in_place.output(2, 1, 1), (Slice{2, Buffer::out, 1, 1}));
  Builder scatter("scatter", {Collective::reducescatter, 3, 0, 6, true});
  EXPECT_EQ(scatter.output(2, 0, 2), (Slice{2, Buffer::out, 4, 2}));
  Builder apart("apart", {Collective::allgather, 3, 0, 6, false});
  EXPECT_EQ(apart.input(2, 1, 1), (Slice{2, Buffer::in, 1, 1}));
}

TEST(Builder, OnlyRootedCollectivesKeepARoot) {
  EXPECT_EQ(Builder("a", {Collective::allreduce, 4, 2, 4, false}).finish().contract.root, 0);
  EXPECT_EQ(Builder("a", {Collective::broadcast, 4, 2, 4, false}).finish().contract.root, 2);
}

TEST(Builder, FinishLeavesItEmpty) {
  Builder b("first", kFourRanks);
  b.add_host();
  b.copy(b.output(1, 0, 1), b.input(0, 0, 1));
  EXPECT_EQ(b.finish().ops.size(), 1u);
  b.copy(b.output(2, 0, 1), b.output(1, 0, 1));
  const Program second = b.finish();
  EXPECT_EQ(second.hosts, 0);
  EXPECT_EQ(second.ops.size(), 1u);
  EXPECT_EQ(dependencies(second, 0), std::vector<OpId>{});
}

TEST(Builder, RingOf64RanksHasAtMostTwoDependenciesAnOp) {
  const int n = 64;
  Builder b("ring", {Collective::allreduce, n, 0, n, false});
  for (int step = 0; step < n - 1; ++step) {
    for (int rank = 0; rank < n; ++rank) {
      const int next = (rank + 1) % n;
      const int block = (rank - step + n) % n;
      const Slice mine = step == 0 ? b.input(rank, block, 1) : b.output(rank, block, 1);
      b.combine(b.output(next, block, 1), {b.input(next, block, 1), mine});
    }
  }
  const Program program = b.finish();
  for (const Op& op : program.ops) EXPECT_LE(op.dep_count, 2u);
}

/// By brute force: ops that conflict are ordered, and no dependency is idle.
TEST(Builder, RandomProgramsAreOrderedAsIfOpsRanOneByOne) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Program program = random_program(random, {.extra_dependencies = false});
    const auto before = happens_before(program);
    for (OpId b = 0; b < program.ops.size(); ++b) {
      const Op& op = program.ops[b];
      for (OpId a = 0; a < b; ++a) {
        if (touch_same_units(program, program.ops[a], op)) {
          EXPECT_TRUE(before[b][a]) << "op " << b << " is not ordered after op " << a;
        }
      }
      std::set<std::pair<PlaceId, int>> lanes = {{op.at, op.lane}};
      OpId last = Builder::kNone;
      for (const OpId a : program.dependencies_of(op)) {
        const Op& earlier = program.ops[a];
        EXPECT_TRUE(last == Builder::kNone || a > last) << "of op " << b << " are not sorted";
        EXPECT_LT(a, b);
        EXPECT_TRUE(touch_same_units(program, earlier, op)) << "op " << b << " after " << a;
        EXPECT_TRUE(lanes.insert({earlier.at, earlier.lane}).second)
            << "op " << b << " has a dependency that lane order gives: " << a;
        last = a;
      }
    }
  }
}

TEST(Builder, LargeBuffersWithFewOpsStaySmall) {
  // Accesses to 2^24 units that meet in the middle: cells are made along the cuts only.
  Builder b("coarse", {Collective::broadcast, 2, 0, kMaxUnits, false});
  const std::int64_t cut = kMaxUnits / 2 + 12345;
  b.copy(b.output(1, 0, cut), b.input(0, 0, cut));                                           // 0
  b.copy(b.output(1, cut, kMaxUnits - cut), b.input(0, cut, kMaxUnits - cut), {.lane = 1});  // 1
  b.copy(b.tmp(1, cut - 1, 2), b.output(1, cut - 1, 2));       // 2 reads both
  b.copy(b.tmp(1, cut, 1), b.output(1, cut, 1), {.lane = 1});  // 3 overwrites a part of 2's
  b.copy(b.output(1, 0, kMaxUnits), b.input(0, 0, kMaxUnits), {.lane = 2});  // 4 overwrites all
  const Program program = b.finish();
  EXPECT_EQ(dependencies(program, 2), (std::vector<OpId>{0, 1}));
  EXPECT_EQ(dependencies(program, 3), (std::vector<OpId>{1, 2}));
  EXPECT_EQ(dependencies(program, 4), (std::vector<OpId>{0, 1, 2, 3}));
}

TEST(BuilderDeathTest, MisuseIsABug) {
  Builder b("misuse", {Collective::allgather, 3, 0, 6, false});
  EXPECT_DEATH(b.input(3, 0, 1), "internal error");
  EXPECT_DEATH(b.input(0, 1, 2), "internal error");  // a block is two units
  EXPECT_DEATH(b.output(0, 0, 0), "internal error");
  EXPECT_DEATH(b.tmp(3, 0, 1), "internal error");  // no such place
  EXPECT_DEATH(b.copy(b.output(0, 0, 1), b.output(1, 0, 2)), "internal error");
  EXPECT_DEATH(b.copy(b.output(0, 1, 1), b.input(0, 0, 1)), "internal error");  // not aligned
  EXPECT_DEATH(b.copy(b.tmp(0, 0, 4), b.tmp(0, 2, 4)), "internal error");       // partial overlap
  EXPECT_DEATH(b.copy(b.output(0, 0, 1), b.input(1, 0, 1), {.at = 2}), "internal error");
  EXPECT_DEATH(b.copy(b.output(0, 0, 1), b.input(1, 0, 1), {.lane = 65536}), "internal error");
  EXPECT_DEATH(b.compute(0, -1), "internal error");
  EXPECT_DEATH(b.after(0, 1), "internal error");
  EXPECT_DEATH(Builder("b", {Collective::allgather, 3, 0, 4, false}), "internal error");
}

}  // namespace
}  // namespace espalier
