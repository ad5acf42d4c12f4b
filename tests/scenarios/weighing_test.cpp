// SPDX-License-Identifier: Apache-2.0
// How values of weighed parameters are tried, on made-up times.
#include "scenarios/weighing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace espalier {
namespace {

/// Of `optimal`, whose `fabric` makes other plans and whose `strips` writes them otherwise.
struct Asked {
  std::int64_t fabric = 0;
  std::int64_t strips = 0;
  double worthwhile_s = 0;
};

class Weigh : public testing::Test {
 protected:
  /// \param time_s by fabric and strips
  Prediction weigh_with(const std::function<double(std::int64_t, std::int64_t)>& time_s,
                        double worthwhile_s = std::numeric_limits<double>::infinity()) {
    const WeighedBy by{.program = [&](const AlgorithmChoice&) { return program_; },
                       .is_crowded = [](const Program&) { return false; },
                       .predict =
                           [&](const AlgorithmChoice& choice, double its_worthwhile_s) {
                             const Asked one{choice.parameters.at("fabric"),
                                             choice.parameters.at("strips"), its_worthwhile_s};
                             asked_.push_back(one);
                             Prediction made;
                             made.algorithm = spec_of(choice);
                             made.best.time_s = time_s(one.fabric, one.strips);
                             return made;
                           },
                       .worthwhile_s = worthwhile_s};
    return weigh(parse_algorithm("optimal:plan=1"), by);
  }

  std::vector<Asked> asked_;
  std::shared_ptr<const Program> program_;  ///< of all plans in all forms; null: they differ
};

/// 2 s are more than 1.15 times as long as 1 s, and how that plan is written does not matter.
TEST_F(Weigh, TriesFormsOfPlansNearTheBest) {
  const Prediction best = weigh_with([](std::int64_t fabric, std::int64_t strips) {
    const double plan_s = fabric == 1 ? 1 : 2;
    return strips == 32 ? plan_s * 0.9 : plan_s;
  });
  EXPECT_DOUBLE_EQ(best.best.time_s, 0.9);
  ASSERT_EQ(asked_.size(), 4U);
  EXPECT_EQ(asked_[0].fabric, 1);
  EXPECT_TRUE(std::isinf(asked_[0].worthwhile_s));
  EXPECT_EQ(asked_[1].fabric, 0);
  EXPECT_DOUBLE_EQ(asked_[1].worthwhile_s, 1.15);
  EXPECT_EQ(asked_[2].fabric, 1);
  EXPECT_EQ(asked_[3].fabric, 1);
  EXPECT_DOUBLE_EQ(asked_[3].worthwhile_s, 1) << "only what is faster";
}

/// Other algorithms take 0.5 s: plans that take 1 s are looked at as far as they may take 0.575 s,
/// and their other forms not at all.
TEST_F(Weigh, EndsOnceOthersAreOutOfReach) {
  const Prediction best = weigh_with([](std::int64_t, std::int64_t) { return 1.0; }, 0.5);
  EXPECT_DOUBLE_EQ(best.best.time_s, 1);
  ASSERT_EQ(asked_.size(), 2U);
  for (const Asked& one : asked_) EXPECT_DOUBLE_EQ(one.worthwhile_s, 0.575);
}

/// A plan that is written in one way only matters if it is the fastest itself.
TEST_F(Weigh, FollowsAPlanWithoutOtherFormsNoFurtherThanItMayWin) {
  program_ = std::make_shared<const Program>();
  weigh_with([](std::int64_t, std::int64_t) { return 1.0; }, 0.5);
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_DOUBLE_EQ(asked_[0].worthwhile_s, 0.5);
}

TEST_F(Weigh, TakesTheDefaultsOfEquallyFastPlans) {
  const Prediction best = weigh_with([](std::int64_t, std::int64_t) { return 1.0; });
  EXPECT_EQ(best.algorithm.find("fabric=1"), std::string::npos) << best.algorithm;
  EXPECT_EQ(asked_.size(), 6U) << "both plans in all their forms";
}

}  // namespace
}  // namespace espalier
