// SPDX-License-Identifier: Apache-2.0
// The examples of docs/ir.md break the rule they stand under.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/file.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace espalier {
namespace {

/// The first code block of the section "### R1 ..." and so on.
std::string example_of(const std::string& page, const std::string& rule) {
  const std::size_t section = page.find("### " + rule + " ");
  const std::size_t begin = page.find("```\n", section) + 4;
  const std::size_t end = page.find("```", begin);
  if (section == std::string::npos || end == std::string::npos) return {};
  return page.substr(begin, end - begin);
}

TEST(RulesDoc, EveryExampleBreaksItsRule) {
  const std::string page = read_file(ESPALIER_SOURCE_DIR "/docs/ir.md");
  for (const std::string rule : {"R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9"}) {
    SCOPED_TRACE(rule);
    const std::string example = example_of(page, rule);
    ASSERT_FALSE(example.empty());
    std::string text = "program example\ncollective allreduce\nunits 2\n";
    if (rule == "R1") text += "hosts 1\n";
    if (!example.starts_with("ranks")) text += "ranks 2\n";
    const Verification verification = verify(parse_program(text + example, "ir.md"));
    if (rule == "R9") {
      EXPECT_TRUE(verification.ok());
      EXPECT_FALSE(verification.order_consistent);
      continue;
    }
    EXPECT_TRUE(std::any_of(verification.problems.begin(), verification.problems.end(),
                            [&](const Diagnostic& problem) { return problem.rule == rule; }));
  }
}

}  // namespace
}  // namespace espalier
