// SPDX-License-Identifier: Apache-2.0
#include "cli/sweep.h"

#include <gtest/gtest.h>

#include "core/units.h"
#include "core/words.h"
#include "scenarios/describe.h"

namespace espalier {
namespace {

Outcome outcome(const std::string& algorithm, std::int64_t size_bytes, double time_s) {
  Outcome one;
  one.query.algorithm = algorithm;
  one.query.size_bytes = size_bytes;
  one.verified = true;
  one.report.time_s = time_s;
  return one;
}

TEST(Answers, BestIsTheFastestOfTheLargestSize) {
  Answers answers;
  EXPECT_EQ(answers.best(), nullptr);
  answers.add(outcome("small", 1, 0.1));
  answers.add(outcome("slow", 2, 3));
  answers.add(outcome("fast", 2, 2));
  EXPECT_EQ(answers.best()->query.algorithm, "fast");
}

TEST(Answers, ReasonsAreKeptOnce) {
  Answers answers;
  Outcome skipped = outcome("a", 1, 0);
  skipped.skipped = "because";
  answers.add(skipped);
  answers.add(skipped);
  EXPECT_EQ(answers.skipped.size(), 1u);
  EXPECT_TRUE(answers.outcomes.empty());
}

TEST(Conclude, WrongResultsFail) {
  Answers answers;
  answers.add(outcome("a", 1, 1));
  EXPECT_EQ(conclude(answers, false), 0);
  answers.outcomes.back().report.executed.emplace().wrong = 0;
  EXPECT_EQ(conclude(answers, false), 0);
  answers.outcomes.back().report.executed->wrong = 2;
  EXPECT_EQ(conclude(answers, false), 1);
}

TEST(Conclude, RefusedProgramsFail) {
  Answers answers;
  answers.add(outcome("a", 1, 1));
  Outcome broken = outcome("b", 1, 1);
  broken.verified = false;
  answers.add(broken);
  EXPECT_EQ(conclude(answers, true), 1);
}

TEST(Conclude, NamedAlgorithmsMustApply) {
  Answers answers;
  answers.add(outcome("a", 1, 1));
  Outcome skipped = outcome("b", 1, 0);
  skipped.skipped = "because";
  answers.add(skipped);
  EXPECT_EQ(conclude(answers, true), 0);
  try {
    conclude(answers, false);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_STREQ(error.what(), "error: b is not possible here: because");
  }
  answers.outcomes.clear();
  EXPECT_THROW(conclude(answers, true), Error) << "nothing ran at all";
}

TEST(Describe, RanksAndSizes) {
  EXPECT_EQ(format_ranges({0, 1, 2, 3, 6}), "0-3,6");
  EXPECT_EQ(format_ranges({0, 3, 2, 1, 5, 6}), "0,3,2,1,5,6");
  EXPECT_EQ(format_ranges({4}), "4");
  Query query;
  EXPECT_EQ(describe_ranks(query, 4), "4 ranks");
  query.topology = "dgx1-v100";
  EXPECT_EQ(describe_ranks(query, 8), "dgx1-v100, all GPUs (8 ranks)");
  query.gpus = {2};
  EXPECT_EQ(describe_ranks(query, 1), "dgx1-v100, GPU 2 (1 rank)");
  EXPECT_EQ(describe_size(1 << 20), "1MiB");
  EXPECT_EQ(describe_size(1'000'000), "1000000 bytes");
}

}  // namespace
}  // namespace espalier
