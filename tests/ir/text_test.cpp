// SPDX-License-Identifier: Apache-2.0
#include "ir/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "ir/builder.h"
#include "ir/verify.h"
#include "tests/ir/random_program.h"

namespace espalier {
namespace {

const std::string kHeader =
    "program test\n"
    "collective allreduce\n"
    "ranks 2\n"
    "units 4\n";

Program parse(const std::string& text) { return parse_program(text, "test.esp"); }

/// What a text is refused for, as the user sees it.
std::string errors(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "none";
}

TEST(Text, PrintsWhatIsNotUsual) {
  Builder b("two words", {Collective::broadcast, 2, 1, 4, true});
  const PlaceId host = b.add_host();
  b.copy(b.tmp(host, 0, 4), b.output(1, 0, 4), {.lane = 2, .via = "node 1"});
  b.copy(b.output(0, 0, 4), b.tmp(host, 0, 4), {.at = 0});
  b.compute(0, 1.5e-3);
  b.compute(host, 0);
  b.busy(OpKind::wait, 1, 2e-6, {.lane = 1});
  EXPECT_EQ(print_program(b.finish()),
            "program \"two words\"\n"
            "collective broadcast root 1\n"
            "ranks 2\n"
            "units 4\n"
            "in_place\n"
            "hosts 1\n"
            "0: h0.tmp[0:4] <- r1.out[0:4] lane 2 via \"node 1\"\n"
            "1: r0.out[0:4] <- h0.tmp[0:4] at r0 after 0\n"
            "2: compute 0.0015 at r0\n"
            "3: compute 0 at h0\n"
            "4: wait 2e-06 at r1 lane 1\n");
}

TEST(Text, RelaysAreGpusBesideTheRanks) {
  Builder b("relayed", {Collective::broadcast, 2, 0, 1, false});
  const PlaceId host = b.add_host();
  const PlaceId first = b.add_relay();
  const PlaceId second = b.add_relay();
  b.copy(b.tmp(first, 0, 1), b.input(0, 0, 1));
  b.copy(b.tmp(second, 0, 1), b.tmp(first, 0, 1), {.at = second});
  b.copy(b.tmp(host, 0, 1), b.tmp(second, 0, 1));
  const Program program = b.finish();
  const std::string text =
      "program relayed\n"
      "collective broadcast root 0\n"
      "ranks 2\n"
      "units 1\n"
      "hosts 1\n"
      "relays 2\n"
      "0: g0.tmp[0] <- r0.in[0]\n"
      "1: g1.tmp[0] <- g0.tmp[0] at g1 after 0\n"
      "2: h0.tmp[0] <- g1.tmp[0]\n";
  EXPECT_EQ(print_program(program), text);
  EXPECT_TRUE(same_program(parse(text), program));
  EXPECT_EQ(parse(text).relays, 2);
}

TEST(Text, ReadsWhatPeopleWrite) {
  const Program program = parse(
      "# A comment, and blank lines.\r\n"
      "\r\n"
      "units 4 # in any order\r\n"
      "  program test\r\n"
      "\tranks\t2\r\n"
      "hosts 1\r\n"
      "collective   allreduce\r\n"
      "0: r1.out[0:1]<-r1.in[0]+r0.in[0:1] after 1 0 1 via plx0 lane 65535 at r0 # all options\r\n"
      "1:compute 1e-3 lane 1 at h0");
  ASSERT_EQ(program.ops.size(), 2u);
  EXPECT_EQ(program.name, "test");
  EXPECT_EQ(program.contract, (Contract{Collective::allreduce, 2, 0, 4, false}));
  EXPECT_EQ(program.hosts, 1);
  EXPECT_EQ(program.lines, (std::vector<int>{8, 9}));
  EXPECT_EQ(to_string(program, OpId{0}),
            "r1.out[0] <- r1.in[0] + r0.in[0] at r0 lane 65535 via plx0 after 1 0 1");
  EXPECT_EQ(to_string(program, OpId{1}), "compute 0.001 at h0 lane 1");
}

TEST(Text, TheExampleOfTheDocumentationIsRight) {
  const std::string page = read_file(ESPALIER_SOURCE_DIR "/docs/ir.md");
  const std::size_t begin = page.find("```\n# Allreduce") + 4;
  const std::string example = page.substr(begin, page.find("```", begin) - begin);
  const Program program = parse(example);
  EXPECT_EQ(program.ops.size(), 4u);
  EXPECT_TRUE(verify(program).ok());
  // It is written as it would be printed, after its comment.
  EXPECT_EQ(print_program(program), example.substr(example.find('\n') + 1));
}

TEST(Text, LeavesRulesToTheVerifier) {
  // A dependency on itself and on an op that is not there, a buffer that ends before, a foreign
  // `at`.
  const Program program = parse(kHeader + "0: r0.out[7] <- r0.in[9] at r1 after 0 4000000000\n");
  EXPECT_EQ(to_string(program, OpId{0}), "r0.out[7] <- r0.in[9] at r1 after 0 4000000000");
  EXPECT_EQ(parse("program p\ncollective reduce root 7\nranks 2\nunits 1\n").contract.root, 7);
  EXPECT_EQ(parse("program p\ncollective scatter\nranks 2\nunits 3\n").contract.units, 3);
}

TEST(Text, LargestNumbers) {
  const std::string text =
      "program p\ncollective allreduce\nranks 1048575\nunits 16777216\nhosts 1\n"
      "0: r1048574.tmp[4294967294] <- h0.tmp[4294967294] lane 65535 after 4294967294\n";
  EXPECT_EQ(print_program(parse(text)), text);
  // The largest slice.
  const std::string whole = kHeader + "0: r0.tmp[0:4294967295] <- r1.tmp[0:4294967295]\n";
  EXPECT_EQ(print_program(parse(whole)), whole);
}

TEST(Text, DurationsKeepEveryBit) {
  for (const double seconds :
       {0.1, 1.0 / 3, 5e-324, 1e300, 2.2250738585072014e-308, std::numeric_limits<double>::max()}) {
    Builder b("p", {Collective::allreduce, 1, 0, 1, false});
    b.compute(0, seconds);
    const Program program = parse(print_program(b.finish()));
    EXPECT_EQ(program.duration_s(program.ops[0]), seconds);
  }
}

TEST(Text, AnyNameSurvives) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  for (const std::string& name : {all, std::string(), std::string("#"), std::string("a b"),
                                  std::string("\\x41"), std::string("ring\r"), std::string("\"")}) {
    Builder b(name, {Collective::allreduce, 1, 0, 1, false});
    b.copy(b.output(0, 0, 1), b.input(0, 0, 1), {.via = name});
    const Program program = b.finish();
    const Program again = parse(print_program(program));
    EXPECT_EQ(again.name, name);
    EXPECT_TRUE(same_program(program, again));
  }
}

TEST(Text, RandomProgramsRoundTrip) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Program program = random_program(random);
    const std::string text = print_program(program);
    const Program again = parse(text);
    ASSERT_TRUE(same_program(program, again)) << text;
    EXPECT_EQ(print_program(again), text);
    // An op's number and line are its own.
    ASSERT_EQ(again.lines.size(), again.ops.size());
    for (std::size_t i = 1; i < again.lines.size(); ++i) {
      EXPECT_EQ(again.lines[i], again.lines[i - 1] + 1);
    }
  }
}

TEST(Text, ReportsEveryProblem) {
  EXPECT_EQ(errors(kHeader + "0: r0.uot[0] <- r0.in[0]\n"
                             "1: r0.out[0] <- r2.in[0]\n"
                             "2: r0.out[0] <- r1.in[0] lane 70000\n"),
            "test.esp:5:7: error: unknown buffer 'uot'\n"
            "  help: did you mean 'out'?\n"
            "test.esp:6:17: error: there is no rank 2: the header has 'ranks 2'\n"
            "test.esp:7:31: error: the lane must be from 0 to 65535");
}

TEST(Text, StopsAtTooManyProblems) {
  std::string text = kHeader;
  for (int i = 0; i < 1000; ++i) text += "nonsense\n";
  try {
    parse(text);
    FAIL();
  } catch (const Error& error) {
    ASSERT_EQ(error.diagnostics().size(), 51u);
    EXPECT_EQ(error.diagnostics()[49].where, (Location{"test.esp", 54, 1}));
    EXPECT_EQ(error.diagnostics()[49].message, "unknown keyword 'nonsense'");
    EXPECT_EQ(render(error.diagnostics()[50]),
              "test.esp:55:1: error: too many problems; the rest of the text was not read");
  }
}

/// Bytes of the grammar in any order must be parsed or refused, never more.
TEST(Text, SurvivesRandomBytes) {
  static const std::string kAlphabet = "0123456789:.[]<-+rh \t\r\n\"\\x#";
  static const std::vector<std::string> kWords = {"program ", "collective ", "allreduce", "ranks ",
                                                  "units ",   "compute ",    "at ",       "after ",
                                                  "r0.in[0]", "\n0: ",       " <- ",      "1e999"};
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string text = random() % 2 ? kHeader : "";
    const std::size_t length = random() % 40;
    for (std::size_t k = 0; k < length; ++k) {
      const std::uint64_t draw = random();
      if (draw % 4 == 0) {
        text += kWords[draw / 4 % kWords.size()];
      } else if (draw % 4 == 1) {
        text += static_cast<char>(draw >> 8);
      } else {
        text += kAlphabet[draw / 4 % kAlphabet.size()];
      }
    }
    try {
      const Program program = parse(text);
      EXPECT_TRUE(same_program(program, parse(print_program(program)))) << text;
    } catch (const Error& error) {
      EXPECT_FALSE(error.diagnostics().empty());
    }
  }
}

}  // namespace
}  // namespace espalier
