// SPDX-License-Identifier: Apache-2.0
#include "core/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/temp_file.h"

namespace espalier {
namespace {

TEST(Processors, QuotasAreRoundedUpToWholeProcessors) {
  EXPECT_EQ(quota_from("200000 100000"), 2);
  EXPECT_EQ(quota_from("250000 100000"), 3);
  EXPECT_EQ(quota_from("5000 100000"), 1);
}

TEST(Processors, WhatIsNoQuotaIsNoLimit) {
  for (const char* const text : {"max 100000", "", "200000", "200000 ", "200000 0", "-1 100000",
                                 "x 100000", "99999999999999999999 100000"}) {
    EXPECT_EQ(quota_from(text), std::nullopt) << text;
  }
}

TEST(Processors, TheNarrowestOfTheGroupsAroundCounts) {
  const std::filesystem::path mount = temp_file("groups");
  std::filesystem::create_directories(mount / "slice" / "job");
  std::ofstream(mount / "slice" / "cpu.max") << "300000 100000\n";
  std::ofstream(mount / "slice" / "job" / "cpu.max") << "max 100000\n";
  EXPECT_EQ(quota_of(mount, "/"), std::nullopt);
  EXPECT_EQ(quota_of(mount, "/slice/job"), 3);
  std::ofstream(mount / "slice" / "job" / "cpu.max") << "150000 100000\n";
  EXPECT_EQ(quota_of(mount, "/slice/job"), 2);
  EXPECT_EQ(quota_of(mount, "/gone"), std::nullopt);
}

TEST(Processors, OnlyThoseThisProcessMayRunOn) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(usable_processors(), 1);
  EXPECT_LE(usable_processors(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int processor = 0; processor < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++processor) {
    if (CPU_ISSET(processor, &before)) CPU_SET(processor, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_processors(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace espalier
