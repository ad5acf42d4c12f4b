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

TEST(LikelyMeant, TheSameWordWrittenDifferently) {
  const Words collectives = {"reduce", "allreduce", "reducescatter"};
  EXPECT_EQ(likely_meant("all-reduce", collectives), Words{"allreduce"});
  EXPECT_EQ(likely_meant("Reduce_Scatter", collectives), Words{"reducescatter"});
}

TEST(LikelyMeant, SynonymsOfTheWordOrItsFirstPart) {
  const Words kinds = {"ib_edr", "ib_hdr", "ethernet", "pcie4x8", "pcie4x16"};
  const Synonyms synonyms = {{"eth", "ethernet"},
                             {"infiniband", "ib"},
                             {"fast", "ib_hdr"},
                             {"fast", "ethernet"},
                             {"far", "not there"}};
  EXPECT_EQ(likely_meant("eth_100g", kinds, synonyms), Words{"ethernet"});
  EXPECT_EQ(likely_meant("ETH100", kinds, synonyms), Words{"ethernet"});
  EXPECT_EQ(likely_meant("infiniband_hdr", kinds, synonyms), Words{"ib_hdr"});
  EXPECT_EQ(likely_meant("infiniband", kinds, synonyms), (Words{"ib_edr", "ib_hdr"}));
  EXPECT_EQ(likely_meant("fast", kinds, synonyms), (Words{"ib_hdr", "ethernet"}));
  EXPECT_EQ(likely_meant("far", kinds, synonyms), Words{});
}

TEST(LikelyMeant, CandidatesThatContainTheWord) {
  const Words machines = {"dgx1-p100", "dgx1-v100", "dgx2", "dgx-h100", "hosts"};
  EXPECT_EQ(likely_meant("dgx1", machines), (Words{"dgx1-p100", "dgx1-v100"}));
  EXPECT_EQ(likely_meant("h100", machines), Words{"dgx-h100"});
  EXPECT_EQ(likely_meant("host", machines), Words{"hosts"});
  EXPECT_EQ(likely_meant("rin", {"ring", "nccl_rings"}), Words{"ring"});
  EXPECT_EQ(likely_meant("rings", {"ring", "nccl_rings"}), Words{"ring"});
  EXPECT_EQ(likely_meant("00", machines), Words{});  // too short to say anything
  EXPECT_EQ(likely_meant("dgx3", machines), Words{"dgx2"});
  EXPECT_EQ(likely_meant("", machines), Words{});
  EXPECT_EQ(likely_meant("--", machines), Words{});
}

TEST(DidYouMean, NamesSeveral) {
  EXPECT_EQ(did_you_mean("tree", {"chain", "two_trees", "treetop"}),
            "did you mean 'two_trees' or 'treetop'?");
  EXPECT_EQ(did_you_mean("fp16", {"half", "float"}, {{"fp16", "half"}}), "did you mean 'half'?");
  // What is in nearly all of them says little.
  Words many;
  for (int i = 10; i < 20; ++i) many.push_back("link" + std::to_string(i));
  EXPECT_EQ(did_you_mean("link", many), "one of: " + join(many, ", "));
}

TEST(DidYouMean, SuggestsOneOrListsAll) {
  EXPECT_EQ(did_you_mean("rign", {"chain", "ring"}), "did you mean 'ring'?");
  EXPECT_EQ(did_you_mean("tree", {"chain", "ring"}), "one of: chain, ring");
  EXPECT_EQ(did_you_mean("tree", {}), "");
  Words many;
  for (int i = 0; i < 41; ++i) many.push_back("w" + std::to_string(i));
  const std::string listed = did_you_mean("zzzzzzzz", many);
  EXPECT_TRUE(listed.ends_with(", w38, w39, ...")) << listed;
}

}  // namespace
}  // namespace espalier
