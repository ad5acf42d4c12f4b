// SPDX-License-Identifier: Apache-2.0
#include "core/time_limit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/activity.h"

namespace espalier {
namespace {

constexpr double kAnyTime = std::numeric_limits<double>::infinity();

TEST(TimeLimit, WithoutOneThereIsAlwaysTime) {
  EXPECT_FALSE(is_time_up());
  EXPECT_TRUE(std::isinf(time_left_s()));
  const TimeLimit any(kAnyTime);
  EXPECT_FALSE(is_time_up());
  EXPECT_TRUE(std::isinf(time_left_s()));
  EXPECT_EQ(any.granted(), std::nullopt) << "nothing was limited";
}

TEST(TimeLimit, EndsAndSaysWhetherSomethingWasLeftUndone) {
  double now_s = 100;
  {
    const TimeLimit limit(5, [&] { return now_s; });
    EXPECT_DOUBLE_EQ(time_left_s(), 5);
    now_s = 104;
    EXPECT_FALSE(is_time_up());
    now_s = 105;
    EXPECT_EQ(time_left_s(), 0);
    EXPECT_FALSE(limit.has_cut_short()) << "whoever looks at the clock leaves nothing undone";
    EXPECT_EQ(limit.granted(), (GrantedTime{5, false}));
    EXPECT_TRUE(is_time_up());
    EXPECT_TRUE(limit.has_cut_short());
    EXPECT_EQ(limit.granted(), (GrantedTime{5, true}));
  }
  EXPECT_FALSE(is_time_up()) << "it ends with its scope";
}

TEST(TimeLimit, OfSeveralTheFirstToEndCounts) {
  double now_s = 0;
  const TimeLimit command(10, [&] { return now_s; });
  {
    const TimeLimit longer(20);
    EXPECT_DOUBLE_EQ(time_left_s(), 10);
    const TimeLimit shorter(2);
    EXPECT_DOUBLE_EQ(time_left_s(), 2);
    now_s = 3;
    EXPECT_TRUE(is_time_up());
    EXPECT_EQ(shorter.granted(), (GrantedTime{10, true})) << "what the command was granted";
  }
  EXPECT_DOUBLE_EQ(time_left_s(), 7);
  EXPECT_TRUE(command.has_cut_short()) << "something within it was";
  EXPECT_FALSE(is_time_up());
}

TEST(TimeLimit, WhatATaskLeavesOverIsTheOthers) {
  double now_s = 0;
  const TimeLimit command(12, [&] { return now_s; });
  {
    const TimeLimit first = TimeLimit::share_of_rest(3);
    EXPECT_DOUBLE_EQ(time_left_s(), 6);
    now_s = 3;
  }
  {
    const TimeLimit second = TimeLimit::share_of_rest(2);
    EXPECT_DOUBLE_EQ(time_left_s(), 6);
    now_s = 9;
  }
  const TimeLimit last = TimeLimit::share_of_rest(1);
  EXPECT_DOUBLE_EQ(time_left_s(), 3);
}

TEST(TimeLimit, SharesOfNoLimitAreNone) {
  const TimeLimit share = TimeLimit::share_of_rest(4);
  EXPECT_TRUE(std::isinf(time_left_s()));
  EXPECT_EQ(share.granted(), std::nullopt);
}

TEST(TimeLimit, WhatWouldNotFitIsNotedToo) {
  const TimeLimit limit(10, [] { return 0.0; });
  note_cut_short();
  EXPECT_EQ(limit.granted(), (GrantedTime{10, true}));
}

TEST(Activity, NamesWhatIsDoneFromOutsideIn) {
  EXPECT_EQ(Activity::describe(), std::nullopt);
  {
    const Activity outer("proving the bound");
    const Activity inner("packing trees");
    EXPECT_EQ(Activity::describe(), "proving the bound: packing trees");
  }
  EXPECT_EQ(Activity::describe(), std::nullopt);
}

TEST(Activity, SaysHowMuchIsDone) {
  const Activity activity("simulating");
  Activity::note_done(0.25);
  EXPECT_EQ(Activity::describe(), "simulating: 25 % done, about 0 s left");
}

TEST(Activity, SaysHowMuchOfItsBudgetASearchHasUsed) {
  const Activity activity("packing trees");
  // All that is left is what the limit has left, which is no more than nothing.
  const TimeLimit limit(0, [] { return 0.0; });
  Activity::note_part(0.4);
  EXPECT_EQ(Activity::describe(), "packing trees: 40 % of its budget, about 0 s left");
}

}  // namespace
}  // namespace espalier
