// SPDX-License-Identifier: Apache-2.0
#include "core/interruption.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "core/time_limit.h"

namespace espalier {
namespace {

TEST(InterruptionTest, NothingHappensWithoutACheck) { EXPECT_NO_THROW(check_interruption()); }

TEST(InterruptionTest, InnermostCheckIsCalled) {
  int outer = 0;
  int inner = 0;
  const InterruptionCheck first([&] { ++outer; });
  {
    const InterruptionCheck second([&] { ++inner; });
    check_interruption();
  }
  check_interruption();
  EXPECT_EQ(inner, 1);
  EXPECT_EQ(outer, 1);
}

TEST(InterruptionTest, SearchesAreInterruptedWhereTheyAskForTheTime) {
  const InterruptionCheck check([] { throw std::runtime_error("stop"); });
  EXPECT_THROW(is_time_up(), std::runtime_error);
}

TEST(InterruptionTest, OtherThreadsAreLeftAlone) {
  int calls = 0;
  const InterruptionCheck check([&] { ++calls; });
  std::thread(check_interruption).join();
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace espalier
