// SPDX-License-Identifier: Apache-2.0
#include "formats/op_names.h"

#include <gtest/gtest.h>

#include <string>

namespace espalier {
namespace {

ForeignNames names() {
  return {[](OpId op) { return "step " + std::to_string(op / 10); },
          [](const Slice& slice) {
            return foreign_slice(slice.buffer == Buffer::tmp ? "s" : "o", slice.begin,
                                 slice.begin + slice.length, slice.place);
          }};
}

TEST(OpNames, ReplacesOpsAndSlicesAndNothingElse) {
  std::vector<Diagnostic> problems{{"R6",
                                    "op 12: reads r0.tmp[0:2], which op 30 writes (r12.out[3]), "
                                    "stop 4, ops 5, r1.via[2], or1.in[0]",
                                    "let op 12 wait",
                                    {}}};
  use_foreign_names(problems, names());
  EXPECT_EQ(problems[0].message,
            "step 1: reads s[0:2] of gpu 0, which step 3 writes (o[3] of gpu 12), stop 4, ops 5, "
            "r1.via[2], or1.in[0]");
  EXPECT_EQ(problems[0].suggestion, "let step 1 wait");
}

TEST(OpNames, SaysThingsOnce) {
  std::vector<Diagnostic> problems{{"R5", "op 10 is odd", "", {}},
                                   {"R6", "op 10 is odd", "", {}},
                                   {"R6", "op 11 is odd", "", {}},
                                   {"R6", "op 20 is odd", "", {}},
                                   {"R6", "op 12 is odd (and 4 more)", "", {}}};
  use_foreign_names(problems, names());
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[1].message, "step 1 is odd");
  EXPECT_EQ(problems[2].message, "step 2 is odd (and 4 more)");
}

}  // namespace
}  // namespace espalier
