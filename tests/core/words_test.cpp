// SPDX-License-Identifier: Apache-2.0
#include "core/words.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

using Words = std::vector<std::string>;

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split("a,b", ','), (Words{"a", "b"}));
  EXPECT_EQ(split("", ','), Words{""});
  EXPECT_EQ(split(",a,", ','), (Words{"", "a", ""}));
}

TEST(Join, IsTheInverse) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"a", "", "b"}, ", "), "a, , b");
}

TEST(Trim, TakesBlanksOffBothEnds) {
  EXPECT_EQ(trim(" \ta b\r\n"), "a b");
  EXPECT_EQ(trim(" \n "), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Quote, IsSafeToPrint) {
  EXPECT_EQ(quote("ring"), "'ring'");
  EXPECT_EQ(quote("\x1b[31m\n\x7f"), "'\\x1b[31m\\x0a\\x7f'");
  EXPECT_EQ(quote(std::string(60, 'a')), "'" + std::string(60, 'a') + "'");
  EXPECT_EQ(quote(std::string(61, 'a')), "'" + std::string(60, 'a') + "...'");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
}

TEST(Nearest, FindsTypingErrors) {
  const Words algorithms = {"ring", "chain", "knomial", "halving_doubling"};
  EXPECT_EQ(nearest("rign", algorithms), "ring");  // two neighbours swapped
  EXPECT_EQ(nearest("chian", algorithms), "chain");
  EXPECT_EQ(nearest("RING", algorithms), "ring");
  EXPECT_EQ(nearest("k-nomial", algorithms), "knomial");
  EXPECT_EQ(nearest("halving", algorithms), "halving_doubling");  // its beginning
  EXPECT_EQ(nearest("tree", algorithms), "");
  EXPECT_EQ(nearest("", algorithms), "");
  EXPECT_EQ(nearest("x", {"n", "m"}), "");    // nothing of the word would be left
  EXPECT_EQ(nearest("xy", {"x", "y"}), "x");  // the first of equals
  EXPECT_EQ(nearest(std::string(1000, 'a'), {std::string(1000, 'a')}), "");
}

TEST(DidYouMean, SuggestsOneOrListsAll) {
  EXPECT_EQ(did_you_mean("rign", {"chain", "ring"}), "did you mean 'ring'?");
  EXPECT_EQ(did_you_mean("tree", {"chain", "ring"}), "one of: chain, ring");
  EXPECT_EQ(did_you_mean("tree", {}), "");
  Words many;
  for (int i = 0; i < 21; ++i) many.push_back("w" + std::to_string(i));
  const std::string listed = did_you_mean("zzzzzzzz", many);
  EXPECT_TRUE(listed.ends_with(", w18, w19, ...")) << listed;
}

}  // namespace
}  // namespace espalier
