// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <gtest/gtest.h>

#include "core/check.h"

namespace espalier {
namespace {

TEST(Render, ShowsWhatIsKnown) {
  EXPECT_EQ(render({"R7", "missing", "add it", {"a.yaml", 3, 5}}),
            "a.yaml:3:5: error: missing [R7]\n  help: add it");
  EXPECT_EQ(render({"", "missing", "", {"a.yaml", 3, 0}}), "a.yaml:3: error: missing");
  EXPECT_EQ(render({"", "missing", "", {"a.yaml", 0, 0}}), "a.yaml: error: missing");
  EXPECT_EQ(render({"", "missing", "", {}}), "error: missing");
}

TEST(ExitCode, TellsWhoseFaultItIs) {
  EXPECT_EQ(exit_code(ErrorKind::usage), 2);
  EXPECT_EQ(exit_code(ErrorKind::input), 2);
  EXPECT_EQ(exit_code(ErrorKind::unsupported), 3);
  EXPECT_EQ(exit_code(ErrorKind::runtime), 3);
}

TEST(Error, CarriesEveryProblem) {
  const Error one(ErrorKind::usage, "no such verb", "try help");
  ASSERT_EQ(one.diagnostics().size(), 1u);
  EXPECT_EQ(one.kind(), ErrorKind::usage);
  EXPECT_STREQ(one.what(), "error: no such verb\n  help: try help");

  const Error two(ErrorKind::input, {{"", "first", "", {"a", 1, 1}}, {"", "second", "", {}}});
  EXPECT_STREQ(two.what(), "a:1:1: error: first\nerror: second");
}

TEST(Error, WithoutProblemsIsABug) {
  EXPECT_DEATH(Error(ErrorKind::input, std::vector<Diagnostic>{}), "internal error.*does not hold");
}

TEST(OutOfMemory, IsSomethingNotPossibleHere) {
  const OutOfMemory error("GPU 0 is full", "a smaller --size");
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_EQ(exit_code(error.kind()), 3);
  EXPECT_STREQ(error.what(), "error: GPU 0 is full\n  help: a smaller --size");
}

TEST(OutOfMemory, IsWhatBecomesOfAnAllocationThatFails) {
  EXPECT_EQ(with_memory_to("count", [] { return 3; }), 3);
  try {
    with_memory_to("run ring", []() -> int { throw std::bad_alloc(); });
    FAIL() << "no error";
  } catch (const OutOfMemory& error) {
    EXPECT_STREQ(error.what(), "error: there is not enough memory to run ring");
  }
}

TEST(Check, AbortsAndNamesTheCondition) {
  const int two = 2;
  CHECK(two == 2);
  EXPECT_DEATH(CHECK(two == 3), "error_test.cpp:[0-9]+: internal error: 'two == 3' does not hold");
}

TEST(DiagnosticList, ThrowsNothingWhenEmpty) {
  const DiagnosticList problems;
  EXPECT_TRUE(problems.empty());
  EXPECT_NO_THROW(problems.throw_if_any());
}

TEST(DiagnosticList, SortsByFileOfFirstMentionThenPlace) {
  DiagnosticList problems;
  problems.add({"z.yaml", 9, 1}, "nine");
  problems.add({"a.yaml", 2, 2}, "two");
  problems.add({"z.yaml", 3, 4}, "three four");
  problems.add({"z.yaml", 3, 4}, "three four again");
  problems.add({"z.yaml", 3, 1}, "three one");
  try {
    problems.throw_if_any(ErrorKind::runtime);
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::runtime);
    std::vector<std::string> messages;
    for (const Diagnostic& problem : error.diagnostics()) messages.push_back(problem.message);
    EXPECT_EQ(messages, (std::vector<std::string>{"three one", "three four", "three four again",
                                                  "nine", "two"}));
  }
}

}  // namespace
}  // namespace espalier
