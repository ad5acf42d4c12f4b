// SPDX-License-Identifier: Apache-2.0
// What is wrong with a command line: tests/golden. Here: what a right one means.
#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Verb& verb_called(std::string_view name) {
  const Verb* verb = find_verb(name);
  EXPECT_NE(verb, nullptr);
  return *verb;
}

Arguments sim(const std::vector<std::string>& words) {
  return Arguments(verb_called("sim"), words);
}

TEST(Arguments, DefaultsComeFromTheVerb) {
  Arguments arguments = sim({});
  EXPECT_EQ(arguments.text("--topology"), "");
  EXPECT_EQ(arguments.text("--collective"), "allreduce");
  EXPECT_FALSE(arguments.given("--collective"));
  EXPECT_THAT(arguments.words("--algorithm"), ElementsAre("all"));
  EXPECT_THAT(arguments.sizes("--size"), ElementsAre(std::int64_t{1} << 30));
  EXPECT_EQ(arguments.chunk("--chunk"), std::nullopt);
  EXPECT_THAT(arguments.gpus("--gpus"), IsEmpty());
  EXPECT_FALSE(arguments.flag("--in-place"));
  EXPECT_NO_THROW(arguments.finish());
}

TEST(Arguments, ValuesComeInEveryForm) {
  Arguments arguments = sim({"--topology=ring:n=4,gbps=2", "--algorithm", "ring", "knomial:k=4",
                             "--in-place", "--gpus", "0-2,7", "--algorithm", "chain", "--chunk",
                             "1MiB", "--size", "1KiB..4KiB", "--root", "2"});
  EXPECT_EQ(arguments.text("--topology"), "ring:n=4,gbps=2");
  EXPECT_THAT(arguments.words("--algorithm"), ElementsAre("ring", "knomial:k=4", "chain"));
  EXPECT_TRUE(arguments.flag("--in-place"));
  EXPECT_THAT(arguments.gpus("--gpus"), ElementsAre(0, 1, 2, 7));
  EXPECT_EQ(arguments.chunk("--chunk"), 1 << 20);
  EXPECT_THAT(arguments.sizes("--size"), ElementsAre(1024, 2048, 4096));
  EXPECT_EQ(arguments.integer("--root", 0, 5), 2);
  EXPECT_NO_THROW(arguments.finish());
}

TEST(Arguments, WordsAndStandardInput) {
  const Arguments arguments(verb_called("verify"), {"a.txt", "-", "--ranks", "3", "b.txt"});
  EXPECT_THAT(arguments.positionals(), ElementsAre("a.txt", "-", "b.txt"));
  EXPECT_NO_THROW(arguments.finish());
}

TEST(Arguments, NumbersAreWholeAndInRange) {
  for (const char* word : {"-1", "6", "1.5", "x", "", "99999999999999999999"}) {
    SCOPED_TRACE(word);
    Arguments arguments = sim({"--root", word});
    arguments.integer("--root", 0, 5);
    EXPECT_THROW(arguments.finish(), Error);
  }
}

TEST(Arguments, HelpBeatsEverything) {
  EXPECT_TRUE(sim({"--nonsense", "--help"}).wants_help());
  EXPECT_TRUE(sim({"-h"}).wants_help());
}

TEST(Records, EveryOptionIsDeclaredAndUsed) {
  std::set<std::string_view> used;
  for (const Verb* verb : all_verbs()) {
    SCOPED_TRACE(verb->name);
    std::set<std::string_view> mine;
    for (const OptionUse& use : verb->options) {
      EXPECT_TRUE(mine.insert(use.name).second) << use.name << " twice";
      const OptionSpec& spec = option_spec(use.name);
      EXPECT_EQ(spec.kind == WordKind::flag, spec.value.empty()) << use.name;
    }
    used.insert(mine.begin(), mine.end());
  }
  for (const OptionSpec& spec : all_options()) EXPECT_TRUE(used.contains(spec.name)) << spec.name;
}

TEST(Records, DefaultsAreAmongTheKnownWords) {
  for (const Verb* verb : all_verbs()) {
    for (const OptionUse& use : verb->options) {
      const std::vector<std::string> words = words_of(option_spec(use.name).kind);
      if (words.empty() || use.default_value.empty()) continue;
      EXPECT_THAT(words, ::testing::Contains(std::string(use.default_value)))
          << verb->name << ' ' << use.name;
    }
  }
}

TEST(Records, ExamplesAreRightCommandLines) {
  for (const Verb* verb : all_verbs()) {
    for (const Example& example : verb->examples) {
      SCOPED_TRACE(std::string(example.command));
      std::vector<std::string> words = split(example.command, ' ');
      EXPECT_EQ(words.front(), verb->name);
      words.erase(words.begin());
      EXPECT_NO_THROW(Arguments(*verb, words).finish());
    }
  }
}

}  // namespace
}  // namespace espalier
