// SPDX-License-Identifier: Apache-2.0
#include "exec/lanes/stuck_report.h"

#include <gtest/gtest.h>

#include "tests/exec/test_programs.h"

namespace espalier {
namespace {

TEST(StuckReport, NamesTheFirstOpOfALaneThatHasNotEnded) {
  // r0: op 0, op 1; r1: op 2 after 1.
  Program program;
  program.contract = test_contract(Collective::allreduce, 2, 1);
  add_marker(program, 0, {});
  add_marker(program, 0, {});
  add_marker(program, 1, {0, 1});
  const LanePrograms lowered = lower(program, 1, 4);
  const auto blocked = unfinished_lanes(program, lowered, {true, false, false});
  EXPECT_STREQ(stuck_error("stuck", program, lowered, blocked).what(),
               "error: stuck (2 of 2 lanes have not finished)\n"
               "error: r0 lane 0: op 1 'compute 0 at r0' has not finished\n"
               "  help: if it is only slow, raise --timeout\n"
               "error: r1 lane 0: op 2 'compute 0 at r1 after 0 1' waits for op 1 "
               "'compute 0 at r0' of r0 lane 0");
  EXPECT_TRUE(unfinished_lanes(program, lowered, {true, true, true}).empty());
}

}  // namespace
}  // namespace espalier
