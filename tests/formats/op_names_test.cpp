// SPDX-License-Identifier: Apache-2.0
#include "formats/op_names.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(OpNames, ReplacesOpsAndNothingElse) {
  std::vector<Diagnostic> problems{
      {"R6", "op 12: reads r0.tmp[0:2], which op 3 writes, stop 4, ops 5", "let op 12 wait", {}}};
  name_ops(problems, [](OpId op) { return "step " + std::to_string(op); });
  EXPECT_EQ(problems[0].message, "step 12: reads r0.tmp[0:2], which step 3 writes, stop 4, ops 5");
  EXPECT_EQ(problems[0].suggestion, "let step 12 wait");
}

}  // namespace
}  // namespace espalier
