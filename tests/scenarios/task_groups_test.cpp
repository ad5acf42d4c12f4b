// SPDX-License-Identifier: Apache-2.0
#include "scenarios/task_groups.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

/// Two groups of four tasks each, in turn: 0, 2, 4, 6 and 1, 3, 5, 7.
TaskGroups two_groups() {
  TaskGroups groups;
  for (std::size_t task = 0; task < 8; ++task) groups.add(task, task % 2);
  return groups;
}

TEST(TaskGroups, AWorkerStaysWithItsGroup) {
  TaskGroups groups = two_groups();
  EXPECT_EQ(groups.next_for(0), 0u);
  EXPECT_EQ(groups.next_for(1), 1u);
  EXPECT_EQ(groups.next_for(1), 3u);
  EXPECT_EQ(groups.next_for(0), 2u);
}

TEST(TaskGroups, OneWorkerGoesThroughThemInOrder) {
  TaskGroups groups = two_groups();
  for (std::size_t task = 0; task < 8; ++task) EXPECT_EQ(groups.next_for(0), task);
  EXPECT_EQ(groups.next_for(0), std::nullopt);
}

TEST(TaskGroups, OthersHelpFromTheEndWhereLittleIsFoundOutTwice) {
  TaskGroups groups = two_groups();
  EXPECT_EQ(groups.next_for(0), 0u);
  EXPECT_EQ(groups.next_for(1), 1u);
  EXPECT_EQ(groups.next_for(2), std::nullopt) << "nobody knows how long they take";
  groups.note_time(0, 2, 3);  // of 9 seconds that are left, 2 would be for what is known
  EXPECT_EQ(groups.next_for(2), std::nullopt);
  groups.note_time(1, 0.5, 3);
  EXPECT_EQ(groups.next_for(2), 7u);
  EXPECT_EQ(groups.next_for(3), std::nullopt) << "two would already know";
}

TEST(TaskGroups, NobodyHelpsWithWhatStaysTogether) {
  TaskGroups groups = two_groups();
  groups.keep_together(0);
  EXPECT_EQ(groups.next_for(0), 0u);
  EXPECT_EQ(groups.next_for(1), 1u);
  groups.note_time(0, 0, 3);
  EXPECT_EQ(groups.next_for(2), std::nullopt);
  groups.note_time(1, 0, 3);
  EXPECT_EQ(groups.next_for(2), 7u);
}

TEST(TaskGroups, NobodyElseDoesWhatOneWorkerKnows) {
  TaskGroups groups = two_groups();
  groups.add_for(8, 1);
  EXPECT_EQ(groups.next_for(0), 0u);
  EXPECT_EQ(groups.next_for(1), 8u);
  EXPECT_EQ(groups.next_for(1), 1u);
  groups.note_time(8, 0, 0);
  EXPECT_EQ(groups.next_for(2), std::nullopt)
      << "how long tasks of groups take is not known by that";
  groups.add_for(9, 1);
  groups.take(9);
  EXPECT_EQ(groups.next_for(1), 3u);
}

/// Two machines with two groups each, of two tasks.
TEST(TaskGroups, AWorkerStaysWithItsMachine) {
  TaskGroups groups;
  for (std::size_t task = 0; task < 8; ++task) groups.add(task, task / 2);
  for (std::size_t group = 0; group < 4; ++group) groups.put_in_family(group, group / 2);
  EXPECT_EQ(groups.next_for(0), 0u);
  EXPECT_EQ(groups.next_for(1), 4u) << "the first of a machine that nobody knows";
  EXPECT_EQ(groups.next_for(2), 2u) << "all are known: the first that nobody has begun";
  EXPECT_EQ(groups.next_for(1), 5u);
  EXPECT_EQ(groups.next_for(1), 6u);
  EXPECT_EQ(groups.next_for(0), 1u);
  EXPECT_EQ(groups.next_for(0), std::nullopt) << "nobody knows how long the others take";
  EXPECT_EQ(groups.next_for(2), 3u);
  EXPECT_EQ(groups.next_for(1), 7u);
}

TEST(TaskGroups, WhatIsTakenIsNotHandedOut) {
  TaskGroups groups = two_groups();
  groups.take(0);
  groups.take(1);
  EXPECT_EQ(groups.next_for(0), 2u);
}

}  // namespace
}  // namespace espalier
