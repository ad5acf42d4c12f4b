// SPDX-License-Identifier: Apache-2.0
#include "scenarios/expectation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace espalier {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
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
  one.benchmark_s = 0.08;
  one.nccl = Baseline{0.25, "nccl", 0};
  one.report.message_bytes = 1'000'000'000;
  one.report.simulated.emplace().links = {
      {"a->b", 1.5e9, 0, 0}, {"b->c", 1e9, 0, 0}, {"a memory", 5e9, 0, 0, false}};
  return one;
}

ExpectedResult expect(Measure measure, std::variant<ExpectedFigure, ExpectedOrder> result) {
  ExpectedResult one;
  one.measure = measure;
  one.result = std::move(result);
  return one;
}

ExpectedResult expectation(Measure measure, std::string link = {}) {
  ExpectedFigure figure;
  figure.of.link = std::move(link);
  return expect(measure, figure);
}

Judgement judged(const ExpectedResult& expectation, const Outcome& first,
                 const Outcome& second = {}) {
  return judge(expectation, std::vector<std::vector<const Outcome*>>{{&first, &second}});
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
  EXPECT_THAT(ours(Measure::benchmark_s), Optional(DoubleEq(0.08)));
  EXPECT_THAT(ours(Measure::speedup), Optional(DoubleEq(2.5)));  // 0.25 s of NCCL
  EXPECT_THAT(ours(Measure::link_share, "a->b"), Optional(DoubleEq(1.5)));
  EXPECT_THAT(ours(Measure::link_share, "b->a"), Optional(DoubleEq(0)));
  EXPECT_THAT(ours(Measure::used_links), Optional(DoubleEq(2)));
}

TEST(Judge, DividesByTheOther) {
  Outcome slow = outcome();
  slow.report.time_s = 0.4;
  ExpectedFigure ratio;
  ratio.over = Figure{0, 1, {}};
  EXPECT_THAT(judged(expect(Measure::algbw_gbps, ratio), outcome(), slow).ours,
              Optional(DoubleEq(4)));
  ratio.of.link = "a->b";
  ratio.over->link = "b->a";
  const Judgement by_zero = judged(expect(Measure::link_share, ratio), outcome(), slow);
  EXPECT_FALSE(by_zero.ours);
  EXPECT_EQ(by_zero.missing, "the figure to divide by is 0");
}

TEST(Judge, ReadsEveryMeasureOfTraining) {
  // 4 GPUs with 8 samples each: 0.3 s of computation, 0.2 s of communication, together 0.4 s.
  TrainingOutcome outcome;
  outcome.ranks = 4;
  outcome.query.batch = 8;
  outcome.query.step_s = 0.3;
  outcome.compute_s = 0.3;
  outcome.communication_s = 0.2;
  outcome.report.time_s = 0.4;
  const auto ours = [&](Measure measure) {
    const std::vector<std::vector<const TrainingOutcome*>> answers = {{&outcome}};
    return judge(expectation(measure), answers).ours;
  };
  EXPECT_THAT(ours(Measure::iteration_s), Optional(DoubleEq(0.4)));
  EXPECT_THAT(ours(Measure::communication_s), Optional(DoubleEq(0.2)));
  EXPECT_THAT(ours(Measure::exposed_s), Optional(DoubleNear(0.1, 1e-12)));
  EXPECT_THAT(ours(Measure::exposed_share), Optional(DoubleNear(0.25, 1e-12)));
  EXPECT_THAT(ours(Measure::hidden_s), Optional(DoubleNear(0.1, 1e-12)));
  EXPECT_THAT(ours(Measure::samples_per_s), Optional(DoubleEq(80)));
  EXPECT_THAT(ours(Measure::efficiency), Optional(DoubleEq(0.75)));
}

TEST(Judge, IntervalsOfPapersHaveATolerance) {
  // Ours is 10: 10 % of 8 to 9 are 0.9 at its upper end, 10 % of 11.2 to 12 are 1.12 at the lower.
  const auto verdict = [](double minimum, double maximum) {
    ExpectedFigure figure;
    figure.paper = PaperFigure{minimum, maximum, 0.1};
    return judged(expect(Measure::algbw_gbps, figure), outcome()).verdict;
  };
  EXPECT_EQ(verdict(9, 11), Verdict::reproduced);
  EXPECT_EQ(verdict(8, 9.1), Verdict::reproduced);
  EXPECT_EQ(verdict(8, 9), Verdict::unexplained);
  EXPECT_EQ(verdict(11.1, 12), Verdict::reproduced);
  EXPECT_EQ(verdict(11.2, 12), Verdict::unexplained);
}

TEST(Judge, OrdersRise) {
  const auto order = [](std::vector<double> times_s, std::optional<double> factor = {}) {
    std::vector<Outcome> outcomes(times_s.size(), outcome());
    std::vector<const Outcome*> answers;
    ExpectedOrder expected{{}, factor};
    for (std::size_t i = 0; i < times_s.size(); ++i) {
      outcomes[i].report.time_s = times_s[i];
      answers.push_back(&outcomes[i]);
      expected.figures.push_back({0, i, {}});
    }
    const Judgement judgement =
        judge(expect(Measure::time_s, expected), std::vector<std::vector<const Outcome*>>{answers});
    EXPECT_EQ(judgement.figures, times_s);
    return judgement;
  };
  const Judgement rising = order({1, 2, 3});
  EXPECT_THAT(rising.ours, Optional(DoubleEq(1.5))) << "3 / 2 is less than 2 / 1";
  EXPECT_EQ(rising.verdict, Verdict::reproduced);
  EXPECT_EQ(order({1, 2, 3}, 1.5).verdict, Verdict::reproduced);
  EXPECT_EQ(order({1, 1.5 - 1e-12}, 1.5).verdict, Verdict::reproduced)
      << "as far as times are exact";
  EXPECT_EQ(order({1, 2, 3}, 1.6).verdict, Verdict::direction);
  EXPECT_EQ(order({1, 3, 2}).verdict, Verdict::unexplained);
  EXPECT_EQ(order({1, 1 + 1e-12}).verdict, Verdict::unexplained) << "the same time";
  EXPECT_EQ(order({0, 0}).verdict, Verdict::unexplained);
  EXPECT_EQ(order({0, 2, 3}).verdict, Verdict::reproduced);
  EXPECT_EQ(order({2, 0}).verdict, Verdict::unexplained);
}

TEST(Judge, AClaimWithoutAFigureHasADirectionOnly) {
  const auto verdict = [](const std::string& claim, ExpectedFigure figure) {
    ExpectedResult one = expect(Measure::algbw_gbps, std::move(figure));
    one.claim = claim;
    return judged(one, outcome()).verdict;
  };
  ExpectedFigure range;  // ours is 10
  range.at_least = 9;
  EXPECT_EQ(verdict("", range), Verdict::reproduced);
  EXPECT_EQ(verdict("S9-a", range), Verdict::direction);
  range.paper = PaperFigure{10, 10, 0};
  EXPECT_EQ(verdict("S9-a", range), Verdict::reproduced);
  range.paper.reset();
  range.at_least = 11;
  EXPECT_EQ(verdict("S9-a", range), Verdict::unexplained);
}

TEST(Judge, AClaimedOrderIsReproducedByItsFactor) {
  Outcome slow = outcome();
  slow.report.time_s = 0.2;
  const auto verdict = [&](std::optional<double> factor) {
    ExpectedResult one =
        expect(Measure::time_s, ExpectedOrder{{Figure{0, 0, {}}, Figure{0, 1, {}}}, factor});
    one.claim = "S9-a";
    return judged(one, outcome(), slow).verdict;
  };
  EXPECT_EQ(verdict({}), Verdict::direction);
  EXPECT_EQ(verdict(1.9), Verdict::reproduced);
  EXPECT_EQ(verdict(2.1), Verdict::direction);
}

TEST(Judge, AnOrderNeedsAllFigures) {
  const Outcome first = outcome();
  const ExpectedResult order =
      expect(Measure::time_s, ExpectedOrder{{Figure{0, 0, {}}, Figure{0, 1, {}}}, {}});
  const Judgement judgement =
      judge(order, std::vector<std::vector<const Outcome*>>{{&first, nullptr}});
  EXPECT_FALSE(judgement.ours);
  EXPECT_EQ(judgement.missing, "the algorithm did not run");
  EXPECT_FALSE(judgement.as_expected(order));
}

TEST(Judge, SaysWhatIsMissing) {
  const auto missing = [](const ExpectedResult& one, const Outcome* outcome) {
    const Judgement judgement = judge(one, std::vector<std::vector<const Outcome*>>{{outcome}});
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
    ExpectedFigure figure;
    if (paper) figure.paper = PaperFigure{*paper, *paper, 0.05};
    figure.at_least = at_least;
    figure.at_most = at_most;
    ExpectedResult one = expect(Measure::algbw_gbps, figure);
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
