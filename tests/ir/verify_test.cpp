// SPDX-License-Identifier: Apache-2.0
#include "ir/verify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/text.h"
#include "tests/ir/random_program.h"
#include "tests/ir/sample_programs.h"
#include "tests/limited_memory.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;

/// "R5: op 1: reads ..." for every problem.
std::vector<std::string> problems_of(const Program& program, const VerifyOptions& options = {}) {
  std::vector<std::string> all;
  for (const Diagnostic& problem : verify(program, options).problems) {
    all.push_back(problem.rule + ": " + problem.message);
  }
  return all;
}

std::vector<std::string> problems_of(const std::string& text) {
  return problems_of(parse_program(text, "test.esp"));
}

bool breaks(const Verification& verification, const std::string& rule) {
  for (const Diagnostic& problem : verification.problems) {
    if (problem.rule == rule) return true;
  }
  return false;
}

TEST(Verify, SamplesAreRight) {
  for (const Program& program : sample_programs()) {
    EXPECT_THAT(problems_of(program), ElementsAre())
        << program.name << " " << to_string(program.contract.collective);
    EXPECT_TRUE(verify(program).order_consistent) << program.name;
  }
}

TEST(Verify, OneRankIsRight) {
  EXPECT_THAT(problems_of(ring_allreduce(1, true)), ElementsAre());
  EXPECT_THAT(problems_of(ring_allreduce(1, false)),
              ElementsAre("R7: rank 0's result unit 0 (r0.out[0]) is never written"));
}

// R1 that the text form cannot even express: programs made by hand.

TEST(Verify, R1ReportsEveryFaultOfTheContract) {
  Program program;
  program.contract = {Collective::broadcast, 0, 3, 0, false};
  program.hosts = -1;
  EXPECT_THAT(problems_of(program),
              ElementsAre("R1: a program needs at least one rank, not 0",
                          "R1: -1 host memories are not possible",
                          "R1: a message of 0 units is not possible: there must be 1 to 16777216",
                          "R1: the root is rank 3, but there are 0 ranks"));
  program.contract = {static_cast<Collective>(77), 2, 0, 2, false};
  program.hosts = 0;
  EXPECT_THAT(problems_of(program),
              ElementsAre("R1: collective number 77 does not exist: there are 9"));
  program.contract = {Collective::allreduce, 2, 0, 1, false};
  program.hosts = std::numeric_limits<int>::max();
  EXPECT_THAT(problems_of(program), ElementsAre("R1: 2 ranks and 2147483647 host memories are more "
                                                "than 1048576 places"));
  program.hosts = 0;
  program.relays = 1 << 20;
  EXPECT_THAT(problems_of(program),
              ElementsAre("R1: 2 ranks and 0 host memories and 1048576 relays "
                          "are more than 1048576 places"));
  program.relays = -1;
  EXPECT_THAT(problems_of(program), ElementsAre("R1: -1 relays are not possible"));
}

TEST(Verify, R1BlockedCollectivesNeedAMultipleOfTheirRanks) {
  Program program;
  program.contract = {Collective::alltoall, 4, 0, 10, false};
  const Verification verification = verify(program);
  ASSERT_EQ(verification.problems.size(), 1u);
  EXPECT_EQ(verification.problems[0].message,
            "10 units cannot be divided into one block per rank for 4 ranks, which alltoall needs");
  EXPECT_EQ(verification.problems[0].suggestion, "use a multiple of 4, such as 12");
}

/// A right program of three copies to break.
Program broadcast_line() {
  Builder b("line", {Collective::broadcast, 3, 0, 2, false});
  b.copy(b.output(0, 0, 2), b.input(0, 0, 2));
  b.copy(b.output(1, 0, 2), b.output(0, 0, 2));
  b.copy(b.output(2, 0, 2), b.output(1, 0, 2));
  return b.finish();
}

TEST(Verify, R1PlacesPoolsAndDurations) {
  EXPECT_THAT(problems_of(broadcast_line()), ElementsAre());

  Program program = broadcast_line();
  program.ops[1].dst.place = 3;
  program.ops[2].at = -2;
  EXPECT_THAT(problems_of(program),
              ElementsAre("R1: op 1: there is no h0: the program has 3 ranks and 0 host memories",
                          "R1: op 2: there is no place -2: the program has 3 ranks and 0 host "
                          "memories"));
  program.relays = 1;
  program.ops[1].dst.place = 4;
  program.ops[2].at = 2;
  EXPECT_THAT(problems_of(program),
              ElementsAre("R1: op 1: there is no g1: the program has 3 ranks, "
                          "0 host memories and 1 relay"));
  program.ops[1].dst = {3, 0, Buffer::out};
  EXPECT_THAT(problems_of(program), ElementsAre("R1: op 1: g0 has no out buffer, only tmp"));

  const std::string pools =
      "names sources, dependencies, a duration or a via node that the program's tables do not have";
  program = broadcast_line();
  program.ops[0].src_count = 1000;
  program.ops[1].via = 0;
  program.ops[2].dep_begin = 0xffffffff;
  EXPECT_THAT(problems_of(program),
              ElementsAre("R1: op 0: " + pools, "R1: op 1: " + pools, "R1: op 2: " + pools));

  program = broadcast_line();
  program.ops[1].src_count = 0;
  program.ops[2].dst.buffer = static_cast<Buffer>(9);
  EXPECT_THAT(
      problems_of(program),
      ElementsAre("R1: op 1: has no source", "R1: op 2: r2 has no such buffer, only out and tmp"));

  program = broadcast_line();
  program.ops[1].kind = OpKind::compute;
  program.ops[1].dst.begin = 0;
  program.durations_s = {std::numeric_limits<double>::quiet_NaN()};
  EXPECT_THAT(problems_of(program),
              ElementsAre("R1: op 1: computes for nan seconds, which is not a duration"));
  program.ops[1].kind = OpKind::wait;
  EXPECT_THAT(problems_of(program),
              ElementsAre("R1: op 1: waits for nan seconds, which is not a duration"));
}

TEST(Verify, R2EmptySlicesAndTheEndOfTheNumbers) {
  Program program = broadcast_line();
  program.ops[1].length = 0;
  program.ops[2].dst.begin = 0xfffffffe;
  const std::vector<std::string> expected{
      "R2: op 1: r1.out[0:0] is empty", "R2: op 1: r0.out[0:0] is empty",
      "R2: op 2: r2.out[4294967294:4294967296] goes beyond the buffer, which has 2 units"};
  EXPECT_EQ(problems_of(program), expected);
  program = broadcast_line();
  program.ops[1].dst = {1, 0xfffffffe, Buffer::tmp};
  EXPECT_THAT(problems_of(program),
              ElementsAre("R2: op 1: r1.tmp[4294967294:4294967296] goes beyond 4294967295 units, "
                          "the maximum size of a tmp buffer"));
}

TEST(Verify, R3NamesTheShortestCycle) {
  // Ops 0 and 1 wait for each other; ops 2 and 3 only for them.
  const std::string text = R"(program cycle
collective broadcast root 0
ranks 3
units 1
0: r0.out[0] <- r0.in[0] after 1
1: r1.out[0] <- r0.in[0] at r1 after 0
2: r2.out[0] <- r1.out[0] at r2 after 1
3: r2.tmp[0] <- r1.out[0] at r2 after 0 2
)";
  EXPECT_THAT(problems_of(text), ElementsAre("R3: op 0: can never run: op 0 waits for op 1, op 1 "
                                             "waits for op 0"));
}

TEST(Verify, R3LongCyclesAreCutShort) {
  Builder b("long", {Collective::broadcast, 20, 0, 1, false});
  b.copy(b.output(0, 0, 1), b.input(0, 0, 1));
  for (int r = 1; r < 20; ++r) b.copy(b.output(r, 0, 1), b.output(r - 1, 0, 1), {.at = r});
  Program program = b.finish();
  program.dependencies.push_back(19);
  program.ops[0].dep_begin = static_cast<std::uint32_t>(program.dependencies.size() - 1);
  program.ops[0].dep_count = 1;
  EXPECT_THAT(
      problems_of(program),
      ElementsAre("R3: op 0: can never run: op 0 waits for op 19, op 19 waits for op 18, op "
                  "18 waits for op 17, op 17 waits for op 16, op 16 waits for op 15, op 15 "
                  "waits for op 14, op 14 waits for op 13, and so on over 13 more ops back "
                  "to op 0"));
}

TEST(Verify, StructuralRulesAreReportedTogetherAndAlone) {
  const std::string text = R"(program several
collective allreduce
ranks 2
units 4
0: r0.out[0:5] <- r0.in[0:5]
1: r0.out[1:3] <- r0.out[0:2]
2: r1.out[0] <- r0.in[0] after 9
3: r1.in[0] <- r1.in[1]
)";
  EXPECT_THAT(
      problems_of(text),
      ElementsAre(
          "R2: op 0: r0.out[0:5] goes beyond the buffer, which has 4 units",
          "R2: op 0: r0.in[0:5] goes beyond the buffer, which has 4 units",
          "R3: op 2: waits for op 9, but the program has 4 ops",
          "R4: op 1: r0.out[1:3] and r0.out[0:2] do not start at the same position within a block "
          "of 4 units, so their numbers of elements may differ",
          "R4: op 1: r0.out[1:3] partly overlaps its own source r0.out[0:2]",
          "R4: op 3: r1.in[0] and r1.in[1] do not start at the same position within a block of 4 "
          "units, so their numbers of elements may differ",
          "R8: op 3: writes r1.in[0], but inputs must not be changed"));
}

TEST(Verify, R5IsReportedWhereUndefinedDataIsFirstRead) {
  const std::string text = R"(program undefined
collective broadcast root 0
ranks 3
units 4
0: r1.tmp[0:2] <- r0.in[0:2]
1: r1.out[0:4] <- r1.tmp[0:4]
2: r2.out[0:4] <- r1.out[0:4] after 1
3: r0.out[0:4] <- r0.in[0:4]
)";
  // Op 2 copies what op 1 made of undefined data: that is told once, and rank 1 and 2's missing
  // units are no news either.
  EXPECT_THAT(problems_of(text), ElementsAre("R5: op 1: reads r1.tmp[2:4], which nothing has "
                                             "written",
                                             "R6: op 1: reads r1.tmp[0:4], which op 0 writes as "
                                             "r1.tmp[0:2], and nothing orders the two"));
}

TEST(Verify, R6OrderMayComeFromFarAway) {
  // Ops 0 and 4 write the same unit. Lane 0 of r0 orders 0 before 1, a dependency 1 before 2, and
  // lane 0 of r1 orders 2 before 4.
  const auto text = [](const std::string& op_2_waits) {
    return R"(program far
collective sendrecv
ranks 3
units 1
0: r1.out[0] <- r0.in[0]
1: r1.tmp[0] <- r0.in[0]
2: r2.out[0] <- r1.in[0])" +
           op_2_waits + R"(
3: r0.out[0] <- r2.in[0]
4: r1.out[0] <- r0.in[0] at r1
)";
  };
  EXPECT_THAT(problems_of(text(" after 1")), ElementsAre());
  EXPECT_THAT(problems_of(text("")), ElementsAre("R6: op 4: writes r1.out[0], which op 0 writes, "
                                                 "and nothing orders the two"));
}

/// Many pairs ordered only through third parties, more than fit one batch of the race checker.
TEST(Verify, R6ManyIndirectOrdersAreFound) {
  constexpr int kWriters = 300;
  Builder b("relay", {Collective::broadcast, 4, 0, kWriters, false});
  for (int r = 0; r < 4; ++r) b.copy(b.output(r, 0, kWriters), b.input(0, 0, kWriters));
  std::vector<OpId> first;
  for (int u = 0; u < kWriters; ++u) {
    first.push_back(b.copy(b.tmp(1, u, 1), b.input(0, u, 1), {.lane = 1 + u}));
  }
  // r3 hears from every writer, r2 from r3, and then r2 reads everything.
  const OpId heard = b.compute(3, 0);
  for (const OpId op : first) b.after(heard, op);
  const OpId told = b.compute(2, 0);
  b.after(told, heard);
  for (int u = 0; u < kWriters; ++u) {
    b.copy(b.tmp(2, u, 1), b.tmp(1, u, 1), {.lane = 1 + u, .at = 2});
  }
  Program program = b.finish();
  ASSERT_THAT(problems_of(program), ElementsAre());
  // The readers' own dependencies on the writers go; a dependency on `told` takes their place.
  for (OpId id = told + 1; id < program.ops.size(); ++id) {
    program.ops[id].dep_begin = static_cast<std::uint32_t>(program.dependencies.size());
    program.ops[id].dep_count = 1;
    program.dependencies.push_back(told);
  }
  EXPECT_THAT(problems_of(program), ElementsAre());
  // Without it for one of them there is one race.
  const OpId reader = told + 200;
  program.ops[reader].dep_count = 0;
  EXPECT_THAT(problems_of(program),
              ElementsAre("R6: op " + std::to_string(reader) + ": reads r1.tmp[199], which op " +
                          std::to_string(first[199]) + " writes, and nothing orders the two"));
}

/// Drops random dependencies of random programs: the verifier finds a race exactly when two ops
/// touch the same units, one writing, and nothing orders them.
TEST(Verify, R6AgreesWithLookingAtEveryPair) {
  int racy = 0;
  int clean = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    std::mt19937_64 random(seed);
    Program program = random_program(random);
    for (Op& op : program.ops) {
      if (op.dep_count > 0 && random() % 8 == 0) --op.dep_count;
    }
    const auto before = happens_before(program);
    bool race = false;
    for (OpId b = 0; b < program.ops.size(); ++b) {
      for (OpId a = 0; a < b; ++a) {
        race = race || (!before[b][a] && touch_same_units(program, program.ops[a], program.ops[b]));
      }
    }
    const Verification verification = verify(program);
    ASSERT_FALSE(breaks(verification, "R1") || breaks(verification, "R2") ||
                 breaks(verification, "R3") || breaks(verification, "R4"))
        << "seed " << seed;
    ASSERT_EQ(breaks(verification, "R6"), race) << "seed " << seed << "\n"
                                                << print_program(program);
    ++(race ? racy : clean);
  }
  EXPECT_GT(racy, 200);
  EXPECT_GT(clean, 200);
}

TEST(Verify, R7SaysWhatIsWrongWithAReduction) {
  Builder b("sum", {Collective::reduce, 4, 0, 2, false});
  // Unit 0 lacks rank 1's input and has rank 2's twice; unit 1 has unit 0 of no one, lacks nobody.
  b.combine(b.output(0, 0, 1),
            {b.input(0, 0, 1), b.input(2, 0, 1), b.input(2, 0, 1), b.input(3, 0, 1)});
  b.combine(b.output(0, 1, 1), {b.input(0, 1, 1), b.input(1, 1, 1), b.input(2, 1, 1),
                                b.input(3, 1, 1), b.input(3, 1, 1), b.input(3, 1, 1)});
  EXPECT_THAT(problems_of(b.finish()),
              ElementsAre("R7: rank 0's result unit 0 (r0.out[0], last written by op 0) lacks the "
                          "input of rank 1 and contains the input of rank 2 twice",
                          "R7: rank 0's result unit 1 (r0.out[1], last written by op 1) contains "
                          "the input of rank 3 3 times"));
}

TEST(Verify, R7NamesAFewOfManyMissingRanks) {
  Builder b("lazy", {Collective::reduce, 9, 0, 6, false});
  b.combine(b.output(0, 0, 6), {b.input(0, 0, 6), b.input(1, 0, 6)});
  EXPECT_THAT(problems_of(b.finish()),
              ElementsAre("R7: rank 0's result units 0 to 5 (r0.out[0:6], last written by op 0) "
                          "lack the input of ranks 2, 3, 4, 5 and 3 more"));
}

TEST(Verify, R7ForeignUnitsOfAReduction) {
  // Block 1 of rank 0's input instead of block 0.
  Builder b("foreign", {Collective::reducescatter, 2, 0, 2, false});
  b.combine(b.output(0, 0, 1), {b.input(0, 1, 1), b.input(1, 0, 1)});
  b.combine(b.output(1, 0, 1), {b.input(0, 1, 1), b.input(1, 1, 1)});
  EXPECT_THAT(problems_of(b.finish()),
              ElementsAre("R7: rank 0's result unit 0 (r0.out[0], last written by op 0) lacks the "
                          "input of rank 0 and contains unit 1 of rank 0, which does not belong "
                          "there"));
}

TEST(Verify, R7InPlaceResultsThatNobodyWrites) {
  Builder b("none", {Collective::sendrecv, 2, 0, 1, true});
  EXPECT_THAT(problems_of(b.finish()),
              ElementsAre("R7: rank 0's result unit 0 (r0.out[0], which no op writes) holds unit 0 "
                          "of rank 0 instead of unit 0 of rank 1",
                          "R7: rank 1's result unit 0 (r1.out[0], which no op writes) holds unit 0 "
                          "of rank 1 instead of unit 0 of rank 0"));
}

TEST(Verify, R7AnOverflowingCountIsNoAccident) {
  // Doubling 40 times: 2^40 times rank 0's input, and rank 1's once.
  Builder b("doubling", {Collective::reduce, 2, 0, 1, false});
  b.copy(b.tmp(0, 0, 1), b.input(0, 0, 1));
  for (int i = 0; i < 40; ++i) b.combine(b.tmp(0, 0, 1), {b.tmp(0, 0, 1), b.tmp(0, 0, 1)});
  b.combine(b.output(0, 0, 1), {b.tmp(0, 0, 1), b.input(1, 0, 1)});
  EXPECT_THAT(problems_of(b.finish()),
              ElementsAre("R7: rank 0's result unit 0 (r0.out[0], last written by op 41) contains "
                          "the input of rank 0 4294967295 times or more"));
}

TEST(Verify, R8OnlyOutOfPlace) {
  Builder out_of_place("kept", {Collective::broadcast, 2, 0, 1, false});
  out_of_place.copy(out_of_place.output(0, 0, 1), out_of_place.input(0, 0, 1));
  out_of_place.copy(out_of_place.output(1, 0, 1), out_of_place.input(0, 0, 1));
  out_of_place.copy(out_of_place.input(0, 0, 1), out_of_place.output(1, 0, 1));
  EXPECT_THAT(problems_of(out_of_place.finish()),
              ElementsAre("R8: op 2: writes r0.in[0], but inputs must not be changed"));
}

TEST(Verify, R9IsANoteWhenRanksAddInDifferentOrders) {
  const auto one_step = [](bool own_first) {
    Builder b("one_step", {Collective::allreduce, 3, 0, 1, false});
    for (int r = 0; r < 3; ++r) {
      const int first = own_first ? r : 0;
      b.combine(b.output(r, 0, 1), {b.input(first, 0, 1), b.input((first + 1) % 3, 0, 1),
                                    b.input((first + 2) % 3, 0, 1)});
    }
    return verify(b.finish());
  };
  // (a + b) + c, (b + c) + a and (c + a) + b differ in floating point.
  EXPECT_TRUE(one_step(true).ok());
  EXPECT_FALSE(one_step(true).order_consistent);
  EXPECT_TRUE(one_step(false).ok());
  EXPECT_TRUE(one_step(false).order_consistent);
}

TEST(Verify, R9AdditionIsCommutative) {
  Builder b("pair", {Collective::allreduce, 2, 0, 1, false});
  b.combine(b.output(0, 0, 1), {b.input(0, 0, 1), b.input(1, 0, 1)});
  b.combine(b.output(1, 0, 1), {b.input(1, 0, 1), b.input(0, 0, 1)});
  EXPECT_TRUE(verify(b.finish()).order_consistent);
}

TEST(Verify, DiagnosticsCarryTheLineOfTheOp) {
  const Program program = parse_program(R"(program lines
collective broadcast root 0
ranks 2
units 1

0: r0.out[0] <- r0.in[0]
# a comment
1: r1.out[0] <- r1.tmp[0]
)",
                                        "test.esp");
  const Verification verification = verify(program);
  ASSERT_EQ(verification.problems.size(), 1u);
  EXPECT_EQ(verification.problems[0].where, (Location{"", 8, 0}));
}

TEST(Verify, ReportsTheFirstFewOfARuleAndCountsTheRest) {
  Builder b("many", {Collective::broadcast, 8, 0, 1, false});
  for (int r = 1; r < 8; ++r) b.copy(b.output(r, 0, 1), b.tmp(r, 0, 1));
  EXPECT_THAT(problems_of(b.finish(), {.max_per_rule = 2}),
              ElementsAre("R5: op 0: reads r1.tmp[0], which nothing has written",
                          "R5: op 1: reads r2.tmp[0], which nothing has written (and 5 more)",
                          "R7: rank 0's result unit 0 (r0.out[0]) is never written"));
}

TEST(Verify, UnusedScratchAndDeadOpsAreFine) {
  Program program = broadcast_line();
  Builder b("dead", program.contract);
  b.copy(b.tmp(1, 0, 1), b.input(0, 0, 1));
  for (int r = 0; r < 3; ++r) b.copy(b.output(r, 0, 2), b.input(0, 0, 2));
  b.compute(2, 1e-3);
  EXPECT_THAT(problems_of(b.finish()), ElementsAre());
}

/// Cells, not units, are what costs: the largest message in three parts.
TEST(Verify, TheLargestNumberOfUnits) {
  Builder b("large", {Collective::broadcast, 4, 0, kMaxUnits, false});
  for (int r = 0; r < 4; ++r) {
    b.copy(b.output(r, 0, 5), b.input(0, 0, 5));
    b.copy(b.output(r, 5, 1'000'000), b.input(0, 5, 1'000'000));
    if (r == 3) break;
    b.copy(b.output(r, 1'000'005, kMaxUnits - 1'000'005),
           b.input(0, 1'000'005, kMaxUnits - 1'000'005));
  }
  EXPECT_THAT(problems_of(b.finish()), ElementsAre("R7: rank 3's result units 1000005 to 16777215 "
                                                   "(r3.out[1000005:16777216]) are never written"));
}

TEST(Verify, TooManyCellsAreRefusedNotAttempted) {
  // 2^20 ranks with an input and an output of 64 units that all are touched one by one.
  Builder b("huge", {Collective::allreduce, 1 << 20, 0, 64, false});
  for (int u = 0; u < 64; ++u) b.copy(b.output(0, u, 1), b.input(0, u, 1));
  // 2^20 places x 64 cells x 2 buffers = 2^27.
  EXPECT_THAT(problems_of(b.finish()),
              ElementsAre("limit: the program is too large to verify: its buffers have 134217728 "
                          "separate parts, and the limit is 67108864"));
}

TEST(Verify, ScratchThatBeginsFarOutReachesTheLimit) {
  // Right, but four separate units of 2^32 at its one place.
  Builder b("far", {Collective::broadcast, 1, 0, 4, false});
  const Slice far = b.tmp(0, 4'294'967'288, 1);
  for (int u = 0; u < 4; ++u) {
    const Slice scratch{far.place, far.buffer, far.begin + u, 1};
    b.copy(scratch, b.input(0, u, 1));
    b.copy(b.output(0, u, 1), scratch);
  }
  const Verification verification = verify(b.finish());
  ASSERT_EQ(verification.problems.size(), 1u);
  EXPECT_EQ(verification.problems[0].rule, "limit");
  // 4 units of in and out, and scratch up to unit 4294967291.
  EXPECT_EQ(
      verification.problems[0].message,
      "the program is too large to verify: its buffers have 4294967300 separate parts, and the "
      "limit is 67108864");
  EXPECT_EQ(verification.problems[0].suggestion,
            "use fewer units, or scratch that begins at tmp[0]");
}

/// The sum of both inputs and of input 0 times 2^doublings - 1.
Program repeated(int doublings) {
  Builder b("repeated", {Collective::reduce, 2, 0, 1, false});
  const Slice scratch = b.tmp(0, 0, 1);
  b.copy(scratch, b.input(0, 0, 1));
  for (int i = 0; i < doublings; ++i) b.combine(scratch, {scratch, scratch});
  b.combine(b.output(0, 0, 1), {scratch, b.input(1, 0, 1)});
  return b.finish();
}

TEST(Verify, RepetitionsCountHoweverMany) {
  // 2^64 times an input is nothing in sums modulo 2^64, 2^64 + 1 times as much as once.
  EXPECT_TRUE(verify(repeated(0)).ok());
  for (const int doublings : {1, 2, 20, 23, 24, 31, 32, 63, 64, 65, 100}) {
    SCOPED_TRACE(doublings);
    EXPECT_FALSE(verify(repeated(doublings)).ok());
  }
  Builder b("once_more", {Collective::reduce, 2, 0, 1, false});
  const Slice scratch = b.tmp(0, 0, 1);
  b.copy(scratch, b.input(0, 0, 1));
  for (int i = 0; i < 64; ++i) b.combine(scratch, {scratch, scratch});
  b.combine(b.output(0, 0, 1), {b.input(0, 0, 1), b.input(1, 0, 1), scratch});
  EXPECT_THAT(problems_of(b.finish()),
              ElementsAre("R7: rank 0's result unit 0 (r0.out[0], last written by op 65) contains "
                          "the input of rank 0 4294967295 times or more"));
}

/// `readers` copies of the same units, each on a lane of its own: a chain, or free and followed by
/// an op that waits for all. Then as many ops, on lanes of their own, as there are units write one
/// each.
Program readers_before_writers(int readers, int units, bool is_chain) {
  std::string text = fmt::format(
      "program p\ncollective broadcast\nranks 2\nunits {0}\n"
      "0: r0.tmp[0:{0}] <- r0.in[0:{0}]\n",
      units);
  std::string all;
  for (int i = 1; i <= readers; ++i) {
    text += fmt::format("{0}: r1.tmp[{1}:{2}] <- r0.tmp[0:{3}] at r1 lane {0} after {4}\n", i,
                        is_chain ? 0 : i * units, is_chain ? units : (i + 1) * units, units,
                        is_chain ? i - 1 : 0);
    all += fmt::format(" {}", i);
  }
  text += fmt::format("{}: compute 0 at r1 after{}\n", readers + 1,
                      is_chain ? fmt::format(" {}", readers) : all);
  for (int u = 0; u < units; ++u) {
    text += fmt::format("{}: r0.tmp[{}] <- r0.in[{}] lane {} after {}\n", readers + 2 + u, u, u,
                        u + 1, readers + 1);
  }
  text += fmt::format("{}: r0.out[0:{}] <- r0.in[0:{}]\n", readers + units + 2, units, units);
  text += fmt::format("{}: r1.out[0:{}] <- r0.in[0:{}] lane 1", readers + units + 3, units, units);
  return parse_program(text, "test.esp");
}

TEST(Verify, ManyReadersOfOneWriterAreWaitedFor) {
  for (const bool is_chain : {true, false}) {
    SCOPED_TRACE(is_chain);
    Program program = readers_before_writers(100, 20, is_chain);
    EXPECT_THAT(problems_of(program), ElementsAre());
    // The barrier waits for all readers but one, of a chain for all but the last.
    Op& barrier = program.ops[101];
    program.dependencies[barrier.dep_begin] = is_chain ? 99 : 2;
    const std::vector<std::string> problems = problems_of(program);
    ASSERT_EQ(problems.size(), 8u);
    const int reader = is_chain ? 100 : 1;
    EXPECT_EQ(problems[0],
              fmt::format("R6: op 102: writes r0.tmp[0], which op {} reads as r0.tmp[0:20], and "
                          "nothing orders the two",
                          reader));
    EXPECT_THAT(problems[7], ::testing::EndsWith("(and 12 more)"));
  }
}

using VerifyDeathTest = ::testing::Test;

/// 25 million pairs of a reader and a writer took 300 MB. (Free ones would need as many cells.)
TEST(VerifyDeathTest, ReadersAndWritersAreNotPaired) {
  if (!kCanLimitMemory) GTEST_SKIP() << "with a sanitizer, addresses can't be limited";
  const Program program = readers_before_writers(5000, 5000, true);
  EXPECT_EXIT(
      {
        limit_memory(std::size_t{48} << 20);
        std::_Exit(verify(program).ok() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Verify, ALargeRing) {
  const Verification verification = verify(ring_allreduce(256, false));  // 130 560 ops
  EXPECT_TRUE(verification.ok());
  EXPECT_TRUE(verification.order_consistent);
}

}  // namespace
}  // namespace espalier
