// SPDX-License-Identifier: Apache-2.0
#include "scenarios/expectation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace espalier {
namespace {

using ::testing::DoubleEq;
using ::testing::Optional;

/// 4 ranks, 1 GB in 0.1 s: algbw 10 GB/s, busbw of an allreduce 2 x 3/4 of it, bound 20 GB/s.
Outcome outcome() {
  Outcome one;
  one.query.collective = Collective::allreduce;
  one.ranks = 4;
  one.verified = true;
  one.bound = Bound{};
  one.bound->algbw_gbps = 20;
  one.fraction = 0.5;
  one.report.time_s = 0.1;
  one.report.message_bytes = 1'000'000'000;
  one.report.links = {{"a->b", 1.5e9, 0, 0}, {"b->c", 1e9, 0, 0}, {"a memory", 5e9, 0, 0, false}};
  return one;
}

ExpectedResult expectation(Measure measure, std::string link = {}) {
  ExpectedResult one;
  one.measure = measure;
  one.of.link = std::move(link);
  return one;
}

Judgement judged(const ExpectedResult& expectation, const Outcome& first,
                 const Outcome& second = {}) {
  return judge(expectation, {{&first, &second}});
}

TEST(Judge, ReadsEveryMeasure) {
  const auto ours = [](Measure measure, const std::string& link = {}) {
    return judged(expectation(measure, link), outcome()).ours;
  };
  EXPECT_THAT(ours(Measure::time_s), Optional(DoubleEq(0.1)));
  EXPECT_THAT(ours(Measure::algbw_gbps), Optional(DoubleEq(10)));
  EXPECT_THAT(ours(Measure::busbw_gbps), Optional(DoubleEq(15)));
  EXPECT_THAT(ours(Measure::bound_gbps), Optional(DoubleEq(20)));
  EXPECT_THAT(ours(Measure::fraction), Optional(DoubleEq(0.5)));
  EXPECT_THAT(ours(Measure::link_share, "a->b"), Optional(DoubleEq(1.5)));
  EXPECT_THAT(ours(Measure::link_share, "b->a"), Optional(DoubleEq(0)));
  EXPECT_THAT(ours(Measure::used_links), Optional(DoubleEq(2)));
}

TEST(Judge, DividesByTheOther) {
  Outcome slow = outcome();
  slow.report.time_s = 0.4;
  ExpectedResult ratio = expectation(Measure::algbw_gbps);
  ratio.over = Figure{0, 1, {}};
  EXPECT_THAT(judged(ratio, outcome(), slow).ours, Optional(DoubleEq(4)));
  ratio.measure = Measure::link_share;
  ratio.of.link = "a->b";
  ratio.over->link = "b->a";
  const Judgement by_zero = judged(ratio, outcome(), slow);
  EXPECT_FALSE(by_zero.ours);
  EXPECT_EQ(by_zero.missing, "the figure it is divided by is 0");
}

TEST(Judge, SaysWhatIsMissing) {
  const auto missing = [](const ExpectedResult& one, const Outcome* outcome) {
    const Judgement judgement = judge(one, {{outcome}});
    EXPECT_FALSE(judgement.ours);
    EXPECT_FALSE(judgement.as_expected(one));
    return judgement.missing;
  };
  EXPECT_EQ(missing(expectation(Measure::time_s), nullptr), "the algorithm did not run");
  Outcome unlimited = outcome();
  unlimited.bound->algbw_gbps = std::numeric_limits<double>::infinity();
  EXPECT_EQ(missing(expectation(Measure::bound_gbps), &unlimited), "there is no bound");
}

TEST(Judge, ComparesWithPaperAndRange) {
  struct Case {
    std::optional<double> paper, at_least, at_most;
    Verdict verdict;
  };
  // Ours is 10; 5 % of the paper's figure are 0.52 and 0.53.
  const double inside = 10.4, outside = 10.6;
  for (const auto& [paper, at_least, at_most, verdict] :
       std::vector<Case>{{inside, {}, {}, Verdict::reproduced},
                         {outside, {}, {}, Verdict::unexplained},
                         {outside, 9.0, {}, Verdict::direction},
                         {outside, {}, 11.0, Verdict::direction},
                         {outside, 10.5, {}, Verdict::unexplained},
                         {outside, 9.0, 9.5, Verdict::unexplained},
                         {inside, 10.5, {}, Verdict::unexplained},
                         {{}, 9.0, 11.0, Verdict::reproduced},
                         {{}, 11.0, {}, Verdict::unexplained}}) {
    ExpectedResult one = expectation(Measure::algbw_gbps);
    one.paper = paper;
    one.tolerance = 0.05;
    one.at_least = at_least;
    one.at_most = at_most;
    SCOPED_TRACE(testing::Message()
                 << paper.value_or(0) << " " << at_least.value_or(0) << " " << at_most.value_or(0));
    const Judgement judgement = judged(one, outcome());
    EXPECT_EQ(judgement.verdict, verdict);
    for (const Verdict expected : {Verdict::reproduced, Verdict::direction, Verdict::unexplained}) {
      one.verdict = expected;
      EXPECT_EQ(judgement.as_expected(one), expected == verdict);
    }
  }
}

}  // namespace
}  // namespace espalier
