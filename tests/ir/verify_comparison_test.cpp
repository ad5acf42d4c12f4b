// SPDX-License-Identifier: Apache-2.0
// How results are compared: exactly or by random sums, and what a forger can do about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/file.h"
#include "ir/builder.h"
#include "ir/cell_map.h"
#include "ir/exact_values.h"
#include "ir/findings.h"
#include "ir/hashed_values.h"
#include "ir/op_order.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ir/verify_data.h"
#include "tests/ir/random_program.h"
#include "tests/ir/sample_programs.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

VerifyOptions random_with(std::uint64_t seed) {
  return {.comparison = ResultComparison::random, .seed = seed};
}

std::string said_of(const Verification& verification) {
  std::string all = verification.order_consistent ? "" : "orders differ\n";
  for (const Diagnostic& problem : verification.problems) all += render(problem) + "\n";
  return all;
}

/// An allreduce whose results hold the input of rank i multiplicities[i] times.
Program with_multiplicities(const std::vector<int>& multiplicities) {
  const int n = static_cast<int>(multiplicities.size());
  Builder b("forged", {Collective::allreduce, n, 0, 1, false});
  std::vector<Slice> sources;
  for (int rank = 0; rank < n; ++rank) {
    sources.insert(sources.end(), static_cast<std::size_t>(multiplicities[rank]),
                   b.input(rank, 0, 1));
  }
  b.combine(b.output(0, 0, 1), sources);
  for (int rank = 1; rank < n; ++rank) b.copy(b.output(rank, 0, 1), b.output(0, 0, 1));
  return b.finish();
}

/// n results that all are sums of the n inputs, each a different one: of the first r inputs and of
/// the others. `holds` has to look at about 2 n^2 inputs for n results, and at 3 n combinations.
Program prefixes_and_suffixes(int n) {
  Builder b("prefixes", {Collective::allreduce, n, 0, 1, false});
  const auto prefix = [&](int r) { return b.tmp(0, r, 1); };      // of inputs 0 .. r - 1
  const auto suffix = [&](int r) { return b.tmp(0, n + r, 1); };  // of inputs r .. n - 1
  b.copy(prefix(1), b.input(0, 0, 1));
  b.copy(suffix(n - 1), b.input(n - 1, 0, 1));
  for (int r = 2; r < n; ++r) b.combine(prefix(r), {prefix(r - 1), b.input(r - 1, 0, 1)});
  for (int r = n - 2; r > 0; --r) b.combine(suffix(r), {b.input(r, 0, 1), suffix(r + 1)});
  for (int r = 1; r < n; ++r) b.combine(b.output(r, 0, 1), {prefix(r), suffix(r)});
  b.copy(b.output(0, 0, 1), b.output(1, 0, 1));
  return b.finish();
}

TEST(VerifyComparison, AForgeryAgainstFixedWeightsIsRefusedWhateverTheSeed) {
  // tests/bad/ir/ has the story; there the comparison is exact.
  const std::string file = ESPALIER_SOURCE_DIR "/tests/bad/ir/r7_forged.esp";
  const Program program = parse_program(read_file(file), file);
  const Verification exact = verify(program);
  EXPECT_EQ(exact.proof, Proof::exact);
  EXPECT_FALSE(exact.ok());
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Verification random = verify(program, random_with(seed));
    EXPECT_EQ(random.proof, Proof::probabilistic);
    EXPECT_EQ(said_of(random), said_of(exact)) << "seed " << seed;
  }
  const Verification drawn = verify(program, {.comparison = ResultComparison::random});
  EXPECT_EQ(said_of(drawn), said_of(exact)) << "seed " << process_seed();
}

/// Why a seed must not be known in advance, and what `exact` is for. The multiplicities come from a
/// lattice reduction of the weights that seed 1 gives.
TEST(VerifyComparison, WhoKnowsTheSeedCanForgeARandomComparisonOnly) {
  const Program program =
      with_multiplicities({0, 2, 1, 1, 2, 2, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 2, 1, 2, 1,
                           0, 1, 1, 1, 1, 0, 0, 1, 0, 1, 1, 1, 1, 2, 0, 1, 1, 2, 2, 1, 1, 3});
  EXPECT_TRUE(verify(program, random_with(1)).ok());
  for (std::uint64_t seed = 2; seed < 100; ++seed) {
    EXPECT_FALSE(verify(program, random_with(seed)).ok()) << "seed " << seed;
  }
  EXPECT_FALSE(verify(program, {.seed = 1}).ok());
  EXPECT_FALSE(verify(program, {.comparison = ResultComparison::exact, .seed = 1}).ok());
}

TEST(VerifyComparison, AMultipleOfTheModulusIsNotNothing) {
  // 2^61 times an input is as much as once, modulo 2^61 - 1.
  Builder b("doubling", {Collective::reduce, 2, 0, 1, false});
  b.copy(b.tmp(0, 0, 1), b.input(0, 0, 1));
  for (int i = 0; i < 61; ++i) b.combine(b.tmp(0, 0, 1), {b.tmp(0, 0, 1), b.tmp(0, 0, 1)});
  b.combine(b.output(0, 0, 1), {b.tmp(0, 0, 1), b.input(1, 0, 1)});
  const Program program = b.finish();
  const Verification exact = verify(program);
  EXPECT_THAT(said_of(exact), HasSubstr("contains the input of rank 0 4294967295 times or more"));
  EXPECT_EQ(said_of(verify(program, random_with(5))), said_of(exact));
}

TEST(VerifyComparison, ExactAndRandomAgree) {
  std::uint64_t seed = 0;
  for (const Program& program : sample_programs()) {
    const Verification exact = verify(program, {.comparison = ResultComparison::exact});
    const Verification random = verify(program, random_with(++seed));
    EXPECT_EQ(said_of(exact), "") << program.name;
    EXPECT_EQ(said_of(random), "") << program.name << ", seed " << seed;
    EXPECT_EQ(exact.proof, Proof::exact);
    EXPECT_EQ(random.proof, Proof::probabilistic);
  }
  int refused = 0;
  for (; seed < 3000; ++seed) {
    std::mt19937_64 draw(seed);
    const Program program = random_program(draw, {.max_units = 4, .max_ops = 30});
    const Verification exact = verify(program, {.comparison = ResultComparison::exact});
    ASSERT_EQ(said_of(verify(program, random_with(seed))), said_of(exact)) << "seed " << seed;
    refused += exact.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
}

TEST(VerifyComparison, OrdersOfCombiningAreComparedExactly) {
  const Program program = prefixes_and_suffixes(8);
  for (const VerifyOptions& options : {VerifyOptions{}, random_with(3)}) {
    const Verification verification = verify(program, options);
    EXPECT_TRUE(verification.ok());
    EXPECT_FALSE(verification.order_consistent);
  }
}

TEST(VerifyComparison, NothingIsComparedWhereRulesBeforeAreBroken) {
  Program program;
  program.contract.ranks = 0;
  const Verification verification = verify(program);
  EXPECT_FALSE(verification.ok());
  EXPECT_EQ(verification.proof, Proof::none);
}

TEST(VerifyComparison, ProgramsThatCostTooMuchAreComparedByRandomSums) {
  const Program program = prefixes_and_suffixes(3000);  // 2 n^2 = 18 000 000 > 2^24
  const Verification automatic = verify(program);
  EXPECT_TRUE(automatic.ok());
  EXPECT_FALSE(automatic.order_consistent);
  EXPECT_EQ(automatic.proof, Proof::probabilistic);
  const Verification exact = verify(program, {.comparison = ResultComparison::exact});
  EXPECT_TRUE(exact.ok());
  EXPECT_FALSE(exact.order_consistent);
  EXPECT_EQ(exact.proof, Proof::exact);
}

/// A program, as check_data wants it.
struct Prepared {
  explicit Prepared(Program made) : program(std::move(made)) {}
  DataVerdict check(ResultComparison comparison, const ExactLimits& limits) {
    return check_data(program, cells, order, {.comparison = comparison, .seed = 7}, findings,
                      limits);
  }
  Program program;
  CellMap cells{program, block_units(program.contract)};
  std::vector<OpId> order = run_order(program, lane_chains(program));
  Findings findings{program, 8};
};

TEST(VerifyComparison, TooManyCombinationsAreALimit) {
  // A ring over 8 ranks has 8 x 7 different combinations, and 8 results of 15 inputs and sums each.
  const ExactValues::Limits enough{56, 120};
  for (const ExactValues::Limits& limits :
       {enough, ExactValues::Limits{55, 120}, ExactValues::Limits{56, 119}}) {
    const bool fits = limits.combinations == 56 && limits.inputs_looked_at == 120;
    SCOPED_TRACE(fits);
    Prepared automatic(ring_allreduce(8, false));
    EXPECT_EQ(automatic.check(ResultComparison::automatic, {.moderate = limits}).proof,
              fits ? Proof::exact : Proof::probabilistic);
    EXPECT_TRUE(automatic.findings.take().empty());

    Prepared exact(ring_allreduce(8, false));
    EXPECT_EQ(exact.check(ResultComparison::exact, {.largest = limits}).proof,
              fits ? Proof::exact : Proof::none);
    const std::vector<Diagnostic> problems = exact.findings.take();
    ASSERT_EQ(problems.size(), fits ? 0u : 1u);
    if (fits) continue;
    EXPECT_EQ(problems[0].rule, "limit");
    EXPECT_THAT(problems[0].message, HasSubstr("too large to be verified exactly"));
  }
}

TEST(VerifyComparison, FallingBackReportsNothingTwice) {
  // r1 reads what nothing has written; the rest is a ring that is given up on.
  Program program = ring_allreduce(8, false);
  Builder b("dead_read", program.contract);
  for (const Op& op : program.ops) {
    std::vector<Slice> sources;
    for (const Operand& source : program.sources_of(op))
      sources.push_back(slice(source, op.length));
    b.combine(slice(op.dst, op.length), sources);
  }
  b.copy(b.tmp(1, 104, 1), b.tmp(1, 208, 1));
  Prepared prepared(b.finish());
  const DataVerdict verdict =
      prepared.check(ResultComparison::automatic, {.moderate = {std::size_t{1} << 20, 100}});
  EXPECT_EQ(verdict.proof, Proof::probabilistic);
  EXPECT_EQ(prepared.findings.take().size(), 1u);
}

}  // namespace
}  // namespace espalier
