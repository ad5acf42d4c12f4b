// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <gmock/gmock.h>

#include <chrono>
#include <sstream>
#include <thread>

#include "core/activity.h"

namespace espalier {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr auto kLongerThanAPeriod = std::chrono::milliseconds(1300);

std::string shown(bool live) {
  std::ostringstream out;
  std::ostringstream err;
  const Console console{out, err, false, live};
  {
    Progress progress(console, 2);
    progress.step("ring 1GiB");
    std::this_thread::sleep_for(kLongerThanAPeriod);
  }
  EXPECT_EQ(out.str(), "");
  return err.str();
}

TEST(Progress, TellsOfAStepThatTakesLongAndGoesAway) {
  const std::string text = shown(true);
  EXPECT_THAT(text, HasSubstr("[........................] 1/2 ring 1GiB (1 s)"));
  EXPECT_THAT(text, EndsWith("\r\033[K"));
}

TEST(Progress, CountsFromItsBeginningUntilTheFirstStep) {
  std::ostringstream out;
  std::ostringstream err;
  const Console console{out, err, false, true};
  Progress progress(console, 2);
  std::this_thread::sleep_for(kLongerThanAPeriod);
  progress.resume("ring 1GiB");
  EXPECT_THAT(err.str(), HasSubstr("] 0/2 ring 1GiB (1 s)"));
}

TEST(Progress, HasLinesOfItsOwnInALog) {
  std::ostringstream out;
  std::ostringstream err;
  Console console{out, err};
  console.log_period = std::chrono::seconds(1);
  {
    Progress progress(console, 2);
    progress.step("optimal 1GiB");
    const Activity activity("packing trees");
    std::this_thread::sleep_for(kLongerThanAPeriod);
    progress.erase();
    std::this_thread::sleep_for(kLongerThanAPeriod);
  }
  EXPECT_EQ(err.str(), "1 s: 1/2 optimal 1GiB: packing trees\n");
}

TEST(Progress, IsSilentWithoutATerminal) { EXPECT_EQ(shown(false), ""); }

TEST(Progress, TellsWhatASearchIsDoing) {
  std::ostringstream out;
  std::ostringstream err;
  const Console console{out, err, false, true};
  {
    Progress progress(console, 1);
    progress.step("optimal");
    const Activity activity("packing trees");
    std::this_thread::sleep_for(2 * kLongerThanAPeriod);
  }
  EXPECT_THAT(err.str(), HasSubstr("[........................] 1/1 optimal (1 s)"));
  EXPECT_THAT(err.str(), HasSubstr("\r\033[K1/1 optimal: packing trees (2 s)"));
  EXPECT_THAT(err.str(), EndsWith("\r\033[K"));
}

TEST(Progress, RemindsOnceTerminalOrNot) {
  for (const bool is_live : {true, false}) {
    SCOPED_TRACE(is_live);
    std::ostringstream out;
    std::ostringstream err;
    const Console console{out, err, false, is_live};
    {
      Progress progress(console, 1);
      progress.remind(std::chrono::milliseconds(1), "note: slow");
      progress.step("ring");
      std::this_thread::sleep_for(2 * kLongerThanAPeriod);
    }
    const std::string text = err.str();
    EXPECT_EQ(text.find("note: slow\n"), text.rfind("note: slow\n"));
    EXPECT_THAT(text, HasSubstr("note: slow\n"));
    if (!is_live) {
      EXPECT_EQ(text, "note: slow\n");
    }
    {
      Progress progress(console, 1);
      progress.remind(std::chrono::hours(1), "note: never");
    }
    EXPECT_THAT(err.str(), ::testing::Not(HasSubstr("never")));
  }
}

TEST(Progress, LeavesTheLineToWhoErasedIt) {
  std::ostringstream out;
  std::ostringstream err;
  const Console console{out, err, false, true};
  Progress progress(console, 1);
  progress.step("ring 1GiB");
  progress.erase();
  std::this_thread::sleep_for(kLongerThanAPeriod);
  EXPECT_EQ(err.str(), "");
}

TEST(Progress, HasRowsAboveItThatGoAwayWithIt) {
  std::ostringstream out;
  std::ostringstream err;
  const Console console{.out = out, .err = err, .live = true, .width = 60, .lines = 4};
  {
    Progress progress(console, 3);
    progress.show_above({"first", std::string(200, 'x'), "no room"});
    progress.step("ring 1GiB");
    std::this_thread::sleep_for(kLongerThanAPeriod);
  }
  EXPECT_THAT(err.str(), HasSubstr("\r\033[Kfirst\n" + std::string(59, 'x') + "\n[......"));
  EXPECT_THAT(err.str(), EndsWith("\033[2A\r\033[J"));
  EXPECT_EQ(out.str(), "");
}

TEST(Progress, HasNoRowsAboveItWhereResultsGoElsewhere) {
  std::ostringstream out;
  std::ostringstream err;
  const Console console{.out = out, .err = err, .live = true};
  {
    Progress progress(console, 3);
    progress.show_above({"first"});
    progress.step("ring 1GiB");
    std::this_thread::sleep_for(kLongerThanAPeriod);
  }
  EXPECT_THAT(err.str(), testing::Not(HasSubstr("first")));
}

}  // namespace
}  // namespace espalier
