// SPDX-License-Identifier: Apache-2.0
// Fits of a model whose answer is known: a time of a start-up and a rate.
#include "probe/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace espalier {
namespace {

/// time = start-up (us) + MB / rate (MB/us) + other, for messages of 2^0 to 2^(n - 1) KB.
struct Line {
  std::vector<double> measured;
  std::vector<double> mb;
  int asked = 0;

  static double time(const std::vector<double>& constants, double mb) {
    const double other = constants.size() > 2 ? constants[2] : 0;
    return constants[0] + mb / constants[1] + other;
  }

  Line(int count, const std::vector<double>& truth, double noise, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> deviation(0, noise);
    for (int i = 0; i < count; ++i) {
      mb.push_back(1e-3 * std::exp2(i));
      measured.push_back(time(truth, mb.back()) * std::exp(deviation(random)));
    }
  }

  LeastSquaresProblem problem(const std::vector<double>& start) {
    LeastSquaresProblem made;
    made.start = start;
    made.lower.assign(start.size(), 1e-6);
    made.upper.assign(start.size(), 1e6);
    made.errors = [this](const std::vector<double>& constants) {
      ++asked;
      std::vector<double> errors;
      for (std::size_t i = 0; i < mb.size(); ++i) {
        errors.push_back(std::log(time(constants, mb[i]) / measured[i]));
      }
      return errors;
    };
    // d log(t) / d log(c) = c / t dt/dc: dt/dc is 1, -mb / rate^2 and 1.
    made.slopes = [this](const std::vector<double>& constants, std::size_t index) {
      std::vector<double> slopes;
      for (const double size : mb) {
        const double part = index == 1 ? -size / constants[1] : constants[index];
        slopes.push_back(part / time(constants, size));
      }
      return slopes;
    };
    return made;
  }
};

void expect_within(const FittedValue& found, double truth) {
  EXPECT_EQ(found.determined, Determined::yes);
  EXPECT_LE(found.low, truth);
  EXPECT_GE(found.high, truth);
}

/// What is over from the beginning has tried nothing, and nothing has changed.
TEST(LeastSquares, TriesNothingWithoutTime) {
  Line line(20, {10, 0.2}, 0, 1);
  LeastSquaresProblem problem = line.problem({8, 0.25});
  problem.is_over = [] { return true; };
  const LeastSquaresFit fit = least_squares(problem);
  EXPECT_TRUE(fit.is_cut_short);
  EXPECT_EQ(line.asked, 1);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(fit.values[i].determined, Determined::not_tried);
    EXPECT_EQ(fit.values[i].value, problem.start[i]);
  }
}

/// However early it is over, errors are no larger than at the beginning, and with enough time the
/// answer is that of no limit.
TEST(LeastSquares, EndsWithTheBestSoFar) {
  Line unlimited(20, {10, 0.2}, 0.01, 5);
  const LeastSquaresFit best = least_squares(unlimited.problem({40, 0.05}));
  const auto size = [](const std::vector<double>& errors) {
    double sum = 0;
    for (const double error : errors) sum += std::abs(error);
    return sum;
  };
  int asked = 0;
  bool was_cut_short = true;
  for (int limit = 0; was_cut_short; ++limit) {
    ASSERT_LT(limit, 200);
    Line line(20, {10, 0.2}, 0.01, 5);
    LeastSquaresProblem problem = line.problem({40, 0.05});
    asked = 0;
    problem.is_over = [&] { return asked++ >= limit; };
    const LeastSquaresFit fit = least_squares(problem);
    was_cut_short = fit.is_cut_short;
    const std::vector<double> before = problem.errors(problem.start);
    const std::vector<double> after = problem.errors({fit.values[0].value, fit.values[1].value});
    EXPECT_LE(size(after), size(before) * 1.001) << "limit " << limit;
    if (was_cut_short) continue;
    EXPECT_GT(limit, 5);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(fit.values[i].value, best.values[i].value);
  }
}

/// What is said of a constant when time runs out is no judgement that more time would overturn.
TEST(LeastSquares, JudgesNoConstantThatItHadNoTimeFor) {
  const std::vector<double> truth = {10, 0.2, 4};
  for (const std::vector<double>& start : {std::vector<double>{40, 0.05, 4}, {10, 0.2, 0.1}}) {
    Line unlimited(20, truth, 0.002, 7);
    const LeastSquaresFit best = least_squares(unlimited.problem(start));
    bool was_cut_short = true;
    int not_tried = 0;
    for (int limit = 0; was_cut_short; ++limit) {
      ASSERT_LT(limit, 200);
      Line line(20, truth, 0.002, 7);
      LeastSquaresProblem problem = line.problem(start);
      int asked = 0;
      problem.is_over = [&] { return asked++ >= limit; };
      const LeastSquaresFit fit = least_squares(problem);
      was_cut_short = fit.is_cut_short;
      for (std::size_t i = 0; i < start.size(); ++i) {
        const Determined now = fit.values[i].determined;
        not_tried += now == Determined::not_tried ? 1 : 0;
        EXPECT_TRUE(std::isfinite(fit.values[i].value));
        if (now != Determined::uncertain && now != Determined::confounded) continue;
        EXPECT_NE(best.values[i].determined, Determined::yes) << "limit " << limit << ", " << i;
      }
    }
    EXPECT_GT(not_tried, 3);
  }
}

TEST(LeastSquares, FindsTheConstantsWithoutNoise) {
  Line line(20, {10, 0.2}, 0, 1);
  const LeastSquaresFit fit = least_squares(line.problem({4, 0.5}));
  ASSERT_EQ(fit.values.size(), 2U);
  EXPECT_NEAR(fit.values[0].value, 10, 0.01);
  EXPECT_NEAR(fit.values[1].value, 0.2, 0.0002);
  EXPECT_LT(line.asked, 25);
  for (const double error : fit.errors) EXPECT_NEAR(error, 0, 1e-3);
}

TEST(LeastSquares, HasTheTruthInItsIntervalsAsOftenAsItSays) {
  // 95 % of 400 intervals, give or take three standard deviations of a count: 380 +- 13.
  int inside = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Line line(24, {10, 0.2}, 0.05, seed);
    const LeastSquaresFit fit = least_squares(line.problem({8, 0.25}));
    for (const auto& [index, truth] : {std::pair{0, 10.0}, std::pair{1, 0.2}}) {
      const FittedValue& found = fit.values[static_cast<std::size_t>(index)];
      inside += found.determined == Determined::yes && found.low <= truth && truth <= found.high;
    }
  }
  EXPECT_GE(inside, 367) << "of 400, seeds 1 to 200";
}

TEST(LeastSquares, IsNotMovedByAFewTimesThatAreFarOff) {
  Line line(24, {10, 0.2}, 0.02, 7);
  line.measured[3] *= 3;
  line.measured[20] *= 0.4;
  const LeastSquaresFit fit = least_squares(line.problem({4, 0.5}));
  EXPECT_NEAR(fit.values[0].value, 10, 0.4);
  EXPECT_NEAR(fit.values[1].value, 0.2, 0.008);
}

TEST(LeastSquares, KeepsWhatTheTimesDoNotDependOn) {
  Line line(6, {10, 0.2}, 0.01, 3);  // up to 32 KB: 0.16 us of 10
  const LeastSquaresFit fit = least_squares(line.problem({8, 0.25}));
  expect_within(fit.values[0], 10);
  EXPECT_EQ(fit.values[1].determined, Determined::uncertain);
  EXPECT_EQ(fit.values[1].value, 0.25);

  LeastSquaresProblem deaf = line.problem({8, 0.25});
  deaf.slopes = [slopes = deaf.slopes](const std::vector<double>& constants, std::size_t index) {
    std::vector<double> all = slopes(constants, index);
    if (index == 1) all.assign(all.size(), 0);
    return all;
  };
  EXPECT_EQ(least_squares(deaf).values[1].determined, Determined::no_effect);
}

TEST(LeastSquares, FitsTheFirstOfTwoConstantsWithTheSameEffect) {
  // 10 us are the sum of two; nothing tells how much belongs to either.
  Line line(20, {8, 0.2, 2}, 0.01, 5);
  const LeastSquaresFit fit = least_squares(line.problem({4, 0.3, 2.5}));
  expect_within(fit.values[0], 10 - 2.5);
  EXPECT_EQ(fit.values[2].determined, Determined::confounded);
  ASSERT_TRUE(fit.values[2].confounded_with);
  EXPECT_EQ(*fit.values[2].confounded_with, 0U);
  EXPECT_EQ(fit.values[2].value, 2.5);
}

TEST(LeastSquares, StopsAtLimits) {
  Line line(20, {10, 0.2}, 0.01, 9);
  LeastSquaresProblem problem = line.problem({4, 0.15});
  problem.upper[1] = 0.18;
  const LeastSquaresFit fit = least_squares(problem);
  EXPECT_EQ(fit.values[1].determined, Determined::at_limit);
  EXPECT_EQ(fit.values[1].value, 0.18);
}

TEST(LeastSquares, FitsNoMoreThanThereAreTimesFor) {
  Line line(4, {10, 0.2}, 0, 1);
  line.mb = {0.001, 1, 10, 100};
  for (std::size_t i = 0; i < 4; ++i) line.measured[i] = Line::time({10, 0.2}, line.mb[i]);
  const LeastSquaresFit fit = least_squares(line.problem({10, 0.25}));
  int determined = 0;
  for (const FittedValue& value : fit.values) determined += value.determined == Determined::yes;
  EXPECT_EQ(determined, 1);  // 4 times - 3 spare ones
}

/// What is known of a constant holds back what the noise would make of it, and lets go of what is
/// really different.
TEST(LeastSquares, MovesKnownConstantsNoFurtherThanTheTimesDemand) {
  Line alike(20, {10.3, 0.205}, 0.05, 4);
  LeastSquaresProblem problem = alike.problem({10, 0.2});
  const LeastSquaresFit free = least_squares(problem);
  problem.spread = {0.015, 0.015};
  const LeastSquaresFit held = least_squares(problem);
  for (std::size_t i = 0; i < 2; ++i) {
    const double start = problem.start[i];
    EXPECT_LT(std::abs(std::log(held.values[i].value / start)),
              0.5 * std::abs(std::log(free.values[i].value / start)));
    // The interval still has what the times alone say.
    ASSERT_EQ(held.values[i].determined, Determined::yes);
    EXPECT_LE(held.values[i].low, free.values[i].value);
    EXPECT_GE(held.values[i].high, free.values[i].value);
  }
  Line other(20, {14, 0.3}, 0.05, 4);
  problem = other.problem({10, 0.2});
  problem.spread = {0.015, 0.015};
  const LeastSquaresFit found = least_squares(problem);
  EXPECT_NEAR(found.values[0].value, 14, 0.7);
  EXPECT_NEAR(found.values[1].value, 0.3, 0.015);
}

/// A time that decides a constant alone meets its prediction whatever it is off by.
TEST(LeastSquares, FitsNoConstantToASingleTime) {
  Line line(12, {10, 0.2}, 0.03, 6);
  LeastSquaresProblem problem = line.problem({8, 0.2});
  problem.start.push_back(1);
  problem.lower.push_back(1e-6);
  problem.upper.push_back(1e6);
  const auto errors = problem.errors;
  problem.errors = [errors](const std::vector<double>& constants) {
    std::vector<double> all = errors({constants[0], constants[1]});
    all[5] += std::log(constants[2]) + 0.4;
    return all;
  };
  const auto slopes = problem.slopes;
  problem.slopes = [slopes](const std::vector<double>& constants, std::size_t index) {
    if (index < 2) return slopes({constants[0], constants[1]}, index);
    std::vector<double> all(12, 0);
    all[5] = 1;
    return all;
  };
  const LeastSquaresFit fit = least_squares(problem);
  EXPECT_EQ(fit.values[2].determined, Determined::one_time);
  EXPECT_EQ(fit.values[2].value, 1);
  EXPECT_EQ(fit.values[0].determined, Determined::yes);
}

/// Of two times that decide a constant, which meet each other by chance, the others' scatter
/// counts.
TEST(LeastSquares, HasTheScatterOfAllInItsIntervals) {
  Line line(14, {10, 0.2}, 0.05, 2);
  line.mb.back() = line.mb[12] = 50;
  line.measured.back() = line.measured[12] = Line::time({10, 0.2}, 50);
  const LeastSquaresFit fit = least_squares(line.problem({10, 0.25}));
  ASSERT_EQ(fit.values[1].determined, Determined::yes);
  // Of the mean of two times, with 12 degrees of freedom; each decides half of its own prediction.
  const double least = student_quantile(12) * fit.scatter / std::sqrt(2);
  EXPECT_GE(std::log(fit.values[1].high / fit.values[1].value), least / std::sqrt(2));
  // What is decided by two times is not what they would be off by themselves.
  EXPECT_GT(fit.leverage[12], 0.4);
  EXPECT_LT(fit.leverage[0], 0.3);
}

TEST(LeastSquares, HasStudentsQuantiles) {
  // Tables of Student's distribution, 0.975: 3.182 (3), 2.571 (5), 2.228 (10), 2.042 (30), 1.960.
  EXPECT_NEAR(student_quantile(3), 3.182, 0.005);
  EXPECT_NEAR(student_quantile(5), 2.571, 0.001);
  EXPECT_NEAR(student_quantile(10), 2.228, 0.001);
  EXPECT_NEAR(student_quantile(30), 2.042, 0.001);
  EXPECT_NEAR(student_quantile(1e9), 1.960, 0.001);
}

}  // namespace
}  // namespace espalier
