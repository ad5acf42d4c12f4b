// SPDX-License-Identifier: Apache-2.0
#include "cli/text.h"

#include <gtest/gtest.h>

#include "core/words.h"

namespace espalier {
namespace {

TEST(FitNumber, LosesDecimalsButNoDigitsBeforeThePoint) {
  EXPECT_EQ(fit_number(1.239, 7), "1.24");
  EXPECT_EQ(fit_number(1234.567, 7), "1234.57");
  EXPECT_EQ(fit_number(12345.678, 7), "12345.7");
  EXPECT_EQ(fit_number(123456.78, 7), "123457");
  EXPECT_EQ(fit_number(9999.996, 7), "10000.0");
  EXPECT_EQ(fit_number(12345678, 7), "12345678");
  EXPECT_EQ(fit_number(9.00719925e15, 7), "9.007199e+15");
  EXPECT_EQ(fit_number(0, 6), "0.00");
}

TEST(Wrap, BreaksAtSpaces) {
  EXPECT_EQ(wrap("one two three", 8, "# "), "# one\n# two\n# three\n");
  EXPECT_EQ(wrap("one two three", 9, "# "), "# one two\n# three\n");
  EXPECT_EQ(wrap("incomprehensible words", 5, ""), "incomprehensible\nwords\n");
  EXPECT_EQ(wrap("", 5, "# "), "# \n");
  EXPECT_EQ(wrap("one two.\n\nthree four", 10, ""), "one two.\n\nthree four\n");
}

TEST(Columns, AlignAndEndWithoutSpaces) {
  Columns columns("lrl");
  columns.add({"a", "1", "long"});
  columns.add({"bcd", "22", ""});
  EXPECT_EQ(columns.render(), "a     1  long\nbcd  22\n");
  EXPECT_EQ(columns.render("# "), "# a     1  long\n# bcd  22\n");
}

TEST(Bar, FillsItsShare) {
  EXPECT_EQ(bar(0, 4), "[    ]");
  EXPECT_EQ(bar(0.5, 4), "[==  ]");
  EXPECT_EQ(bar(0.9, 4), "[====]");
  EXPECT_EQ(bar(1.0000001, 4), "[====]");
  EXPECT_EQ(bar(-1, 4), "[    ]");
}

TEST(Shorten, LeavesOutTheMiddle) {
  EXPECT_EQ(shorten("a b c", 40), "a b c");
  std::string numbers;
  for (int i = 10; i < 40; ++i) numbers += (i > 10 ? " " : "") + std::to_string(i);
  ASSERT_EQ(numbers.size(), 89u);
  // 20 characters from either end, back to a space: 7 and 6 numbers; 89 - 20 - 17 = 52.
  EXPECT_EQ(shorten(numbers, 40),
            "10 11 12 13 14 15 16 [52 characters left out] 34 35 36 37 38 39");
  EXPECT_EQ(shorten(std::string(50, 'x'), 40),
            std::string(20, 'x') + " [10 characters left out] " + std::string(20, 'x'));
}

TEST(Counted, KnowsThePlural) {
  EXPECT_EQ(counted(1, "op"), "1 op");
  EXPECT_EQ(counted(0, "op"), "0 ops");
  EXPECT_EQ(counted(2, "host memory", "host memories"), "2 host memories");
}

TEST(HeaderLine, IsAComment) { EXPECT_EQ(header_line("      size  time  "), "#     size  time\n"); }

}  // namespace
}  // namespace espalier
