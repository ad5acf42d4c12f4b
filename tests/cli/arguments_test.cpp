// SPDX-License-Identifier: Apache-2.0
// What is wrong with a command line: tests/golden. Here: what a right one means.
#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ir/data.h"

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

TEST(Arguments, CommasBetweenAlgorithms) {
  const Arguments arguments = sim({"--algorithm", "ring,knomial:k=4", "chain"});
  EXPECT_THAT(arguments.algorithms(), ElementsAre("ring", "knomial:k=4", "chain"));
}

TEST(Arguments, DecimalAndEmptyMessagesAreRemarkedOn) {
  EXPECT_THAT(sim({"--size", "1GiB", "--chunk", "4M"}).size_notes(), IsEmpty());
  EXPECT_THAT(sim({"--chunk", "0"}).size_notes(), IsEmpty()) << "whole messages";
  EXPECT_THAT(
      sim({"--size", "8,1GB,1MB"}).size_notes(),
      ElementsAre("1GB is 1000000000 bytes; 1GiB, which nccl-tests calls 1G, is 1073741824"));
  EXPECT_THAT(sim({"--chunk", "64kB"}).size_notes(),
              ElementsAre("64kB is 64000 bytes; 64kiB, which nccl-tests calls 64k, is 65536"));
  EXPECT_THAT(sim({"--size", "1GiB,0"}).size_notes(),
              ElementsAre("a message of 0 bytes takes as long as launches and latencies alone"));
}

std::string complaint(const Arguments& arguments) {
  try {
    arguments.finish();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Arguments, EmptyWordsAreProblems) {
  const auto refusal = [](const char* verb, const std::vector<std::string>& words) {
    try {
      const Arguments arguments(verb_called(verb), words);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  EXPECT_EQ(refusal("sim", {"--json", "a", "--trace", ""}),
            "error: --trace: the value is empty\n"
            "  help: write the fastest run's timeline for ui.perfetto.dev; compressed if FILE ends "
            "in .gz");
  const std::string no_ranks =
      "error: --ranks: the value is empty\n  help: number of ranks, if no machine is named";
  EXPECT_EQ(refusal("exec", {"--ranks", ""}), no_ranks);
  EXPECT_EQ(refusal("exec", {"--ranks=", "--algorithm", "ring"}), no_ranks);
  EXPECT_EQ(refusal("run", {"quickstart", "--resume", ""}),
            "error: --resume: the value is empty\n"
            "  help: append answers to FILE as they are found, and reuse those it already has");
  EXPECT_EQ(complaint(Arguments(verb_called("show"), {""})),
            "error: NAME is empty: a name from list, or a file");
  EXPECT_EQ(complaint(sim({""})), "error: unexpected word ''\n  help: espalier help sim");
}

TEST(Arguments, CommasAreBetweenAlgorithms) {
  EXPECT_EQ(complaint(sim({"--algorithm", ","})),
            "error: --algorithm: ',' names no algorithm\n  help: espalier list algorithms");
  EXPECT_EQ(complaint(sim({"--algorithm", "ring,,chain"})),
            "error: --algorithm: 'ring,,chain' has a comma too many\n"
            "  help: espalier list algorithms");
  EXPECT_EQ(complaint(sim({"--algorithm", "ring,chain"})), "");
}

TEST(Arguments, OtherProgramsWordsAreUnderstood) {
  const auto meant = [](const std::string& option, const std::string& word) {
    Arguments arguments(verb_called("exec"), {option, word});
    if (option == "--dtype") arguments.choice_among(option, all_data_types());
    if (option == "--op") arguments.choice_among(option, all_reduce_ops());
    if (option == "--collective") {
      arguments.choice<int>(option, {{"allreduce", 0}, {"broadcast", 1}, {"reducescatter", 2}});
    }
    const std::string said = complaint(arguments);
    return said.substr(said.find("help: ") + 6);
  };
  EXPECT_EQ(meant("--dtype", "fp16"), "did you mean 'half'?");
  EXPECT_EQ(meant("--dtype", "bf16"), "did you mean 'bfloat16'?");
  EXPECT_EQ(meant("--dtype", "f32"), "did you mean 'float'?");
  EXPECT_EQ(meant("--op", "product"), "did you mean 'prod'?");
  EXPECT_EQ(meant("--collective", "all_reduce"), "did you mean 'allreduce'?");
  EXPECT_EQ(meant("--collective", "bcast"), "did you mean 'broadcast'?");
  EXPECT_EQ(meant("--collective", "reduce-scatter"), "did you mean 'reducescatter'?");
  EXPECT_EQ(meant("-n", "20"), "did you mean '--iters'?");
  EXPECT_EQ(meant("--minbytes", "8"), "did you mean '--size'?");
}

TEST(Arguments, NumbersAreWholeAndInRange) {
  for (const char* word : {"-1", "6", "1.5", "x", "99999999999999999999"}) {
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

/// A synonym of nothing would never be seen.
TEST(Records, SynonymsMeanKnownWords) {
  for (int kind = 0; kind <= static_cast<int>(WordKind::nameable); ++kind) {
    const std::vector<std::string> words = words_of(static_cast<WordKind>(kind));
    for (const Synonym& synonym : synonyms_of(static_cast<WordKind>(kind))) {
      EXPECT_THAT(words, ::testing::Contains(std::string(synonym.means)));
      // A chain is an algorithm; who looks for a machine of that name wants a line.
      if (static_cast<WordKind>(kind) == WordKind::nameable) continue;
      EXPECT_THAT(words, ::testing::Not(::testing::Contains(std::string(synonym.word))));
    }
  }
  for (const Synonym& synonym : option_synonyms()) {
    EXPECT_EQ(option_spec(synonym.means).name, synonym.means);
    EXPECT_EQ(std::ranges::count(all_options(), synonym.word, &OptionSpec::name), 0);
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
