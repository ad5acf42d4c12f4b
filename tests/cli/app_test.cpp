// SPDX-License-Identifier: Apache-2.0
#include "cli/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "algorithms/algorithm.h"
#include "cli/help.h"
#include "core/file.h"
#include "core/words.h"
#include "exec/cuda/cuda_backend.h"
#include "scenarios/scenario.h"
#include "tests/temp_file.h"
#include "topologies/load.h"

namespace espalier {
namespace {

struct Result {
  int code;
  std::string out;
  std::string err;
};

Result run(const std::vector<std::string>& words) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_app(words, out, err);
  return {code, out.str(), err.str()};
}

/// The last suggestion of a command that fails.
std::string help_of_failing(const std::vector<std::string>& words) {
  const Result result = run(words);
  EXPECT_EQ(result.code, 2) << result.out;
  const std::size_t help = result.err.rfind("help: ");
  return help == std::string::npos ? result.err
                                   : result.err.substr(help + 6, result.err.size() - help - 7);
}

TEST(App, KnowsWhatOthersCallThings) {
  const auto machine = [](const char* name) {
    return help_of_failing({"sim", "--topology", name, "--algorithm", "ring"});
  };
  EXPECT_EQ(machine("h100"), "did you mean 'dgx-h100'?");
  EXPECT_EQ(machine("a100"), "did you mean 'dgx-a100'?");
  EXPECT_EQ(machine("v100"), "did you mean 'dgx1-v100' or 'v100-pcie'?");
  EXPECT_EQ(machine("dgx1"), "did you mean 'dgx1-p100' or 'dgx1-v100'?");
  EXPECT_EQ(help_of_failing({"simulate"}), "did you mean 'sim'?");
  EXPECT_EQ(help_of_failing({"execute"}), "did you mean 'exec'?");
  EXPECT_EQ(help_of_failing({"run-exec"}), "did you mean 'exec'?");
  EXPECT_EQ(help_of_failing({"bench"}), "did you mean 'exec'?");
  EXPECT_EQ(help_of_failing({"help", "simulate"}), "did you mean 'sim'?");
  EXPECT_EQ(help_of_failing({"show", "h100"}), "did you mean 'dgx-h100'?");
  EXPECT_EQ(help_of_failing({"sim", "--topology", "ring", "--algorithm", "ring,tree"}),
            "did you mean 'double_binary_tree' or 'hierarchical_trees'?");
  EXPECT_EQ(help_of_failing({"sim", "--topology", "ring", "--algorithm", "knomial,k=4"}),
            "parameters follow their algorithm and a colon: knomial:k=4");
  EXPECT_EQ(help_of_failing({"sim", "--topology", "dgx1-v100", "--profile", "mscclpp"}),
            "did you mean 'kernel'?");
  EXPECT_EQ(help_of_failing({"sim", "--topology", "dgx1-v100", "--profile", "kernel:ll129"}),
            "did you mean 'll128'?");
}

TEST(App, KnowsHowProgramsInFilesAreNamed) {
  const std::filesystem::path before = std::filesystem::current_path();
  const std::filesystem::path folder = temp_file("programs_of_mine");
  std::filesystem::create_directory(folder);
  std::filesystem::current_path(folder);
  write_file("mine.esp", run({"show", "ring", "--ranks", "4"}).out);
  const auto algorithm = [](const char* name) {
    return help_of_failing({"sim", "--topology", "ring:n=4", "--algorithm", name});
  };
  EXPECT_EQ(algorithm("mine"), "did you mean './mine.esp'?");
  EXPECT_EQ(algorithm("-"), "a program is read more than once, so save it in a file first: ./FILE");
  EXPECT_EQ(help_of_failing({"sim", "./mine.esp", "--topology", "ring:n=4"}),
            "a program is named with --algorithm ./mine.esp");
  EXPECT_EQ(help_of_failing({"run", "./mine.esp"}),
            "sim, exec and verify take programs: --algorithm ./mine.esp");
  EXPECT_EQ(help_of_failing({"show", "mime.esp"}), "did you mean 'mine.esp'?");
  EXPECT_EQ(help_of_failing({"show", "./nothing.yaml"}),
            "error: there is no file './nothing.yaml'\n");
  EXPECT_EQ(run({"verify", "mine.esp", "--seed", "4"}).err,
            "note: --seed was not needed: results were compared exactly\n");
  write_file("relay.esp",
             "program r\ncollective broadcast root 0\nranks 2\nrelays 1\nunits 1\n"
             "0: g0.tmp[0] <- r0.in[0]\n"
             "1: r1.out[0] <- g0.tmp[0] after 0\n"
             "2: r0.out[0] <- r0.in[0]\n");
  const std::string relay = run({"exec", "--algorithm", "relay.esp"}).err;
  EXPECT_NE(relay.find("help: --topology names a machine, and --relay its idle GPUs\n"),
            std::string::npos)
      << relay;
  std::filesystem::current_path(before);
}

TEST(App, UnknownKindsOfLinksAreHelpedWith) {
  const auto kind = [](const char* name) {
    const std::string file = temp_file("unknown_kind.yaml");
    write_file(file, std::string("schema: espalier.topology/1\nname: m\n"
                                 "nodes: [{name: \"gpu[0-1]\", kind: gpu}]\n"
                                 "links: [{a: gpu0, b: gpu1, gbps: 1, kind: ") +
                         name + "}]\n");
    return help_of_failing({"show", file});
  };
  EXPECT_EQ(kind("eth_100g"), "did you mean 'ethernet'?");
  EXPECT_EQ(kind("infiniband_hdr"), "did you mean 'ib_hdr'?");
  const std::string all = kind("wormhole");
  EXPECT_TRUE(all.starts_with("one of: ")) << all;
  for (const auto& [name, unused] : built_in_profiles().link_kinds) {
    EXPECT_NE(all.find(name), std::string::npos) << name << " is not in " << all;
  }
}

TEST(App, ListsEveryKindOfLinkWithItsFigures) {
  const Result listed = run({"list", "link_kinds"});
  EXPECT_EQ(listed.code, 0);
  for (const auto& [name, kind] : built_in_profiles().link_kinds) {
    EXPECT_NE(("\n" + listed.out).find("\n" + name + " "), std::string::npos) << name;
    EXPECT_FALSE(kind.title.empty() || kind.source.empty()) << name;
    // Those of generic machines are as fast as they say.
    EXPECT_EQ(catalogue_rates(name).empty(), name == "link" || name == "host_link") << name;
  }
}

TEST(App, SaysOnceWhatADecimalSizeIs) {
  const Result decimal =
      run({"sim", "--topology", "ring:n=4", "--algorithm", "ring", "--size", "1GB,2GB"});
  EXPECT_EQ(decimal.code, 0);
  EXPECT_EQ(decimal.err,
            "note: 1GB is 1000000000 bytes; 1GiB, which nccl-tests calls 1G, is 1073741824\n");
  EXPECT_EQ(run({"sim", "--topology", "ring:n=4", "--algorithm", "ring", "--size", "1G"}).err, "");
}

TEST(App, SaysWhatAMessageOfNothingTakes) {
  const Result result =
      run({"sim", "--topology", "ring:n=4", "--algorithm", "ring", "--size", "0"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err,
            "note: a message of 0 bytes takes as long as launches and latencies alone\n");
}

TEST(App, TablesExplainWhatWasChosen) {
  const std::vector<std::string> words = {"sim",    "--topology", "dgx1-v100",
                                          "--size", "1MiB",       "--algorithm"};
  const auto with = [&](const char* algorithm) {
    std::vector<std::string> all = words;
    all.emplace_back(algorithm);
    return run(all).out;
  };
  const std::string chosen = with("optimal:plan=1");
  ASSERT_NE(chosen.find("optimal:plan=1 ("), std::string::npos) << chosen;
  EXPECT_NE(chosen.find("# Parameters chosen for each message:\n"
                        "#   fabric of optimal: 1: plan for the GPU fabric alone"),
            std::string::npos)
      << chosen;
  EXPECT_EQ(with("optimal:fabric=1,strips=16").find("# Parameters"), std::string::npos);
  EXPECT_EQ(with("ring").find("# Parameters"), std::string::npos);
}

/// The part of a report that says how fast it is.
std::string figures(const std::string& json) {
  const std::size_t begin = json.find("\"time_s\"");
  return json.substr(begin, json.find('\n', begin) - begin);
}

TEST(App, AlgorithmsThatDoNotApplyAreNamedOnce) {
  const auto times = [](const std::vector<std::string>& words, const std::string& reason) {
    const Result result = run(words);
    const std::string all = result.out + result.err;
    int count = 0;
    for (std::size_t at = all.find(reason); at != std::string::npos; at = all.find(reason, at + 1))
      ++count;
    return count;
  };
  const std::string no_host = "cannot reach a host memory";
  EXPECT_EQ(
      times({"sim", "--topology", "full:n=4", "--algorithm", "parameter_server:host=1"}, no_host),
      1);
  EXPECT_EQ(times({"compare", "--topology", "full:n=4", "--algorithm", "parameter_server:host=1"},
                  no_host),
            1);
  EXPECT_EQ(times({"train", "--topology", "full:n=4", "--algorithm", "parameter_server:host=1",
                   "--model", "resnet50", "--compute-ms", "1", "--batch", "1"},
                  no_host),
            1);
  const std::string not_power = "needs a power of two as";
  EXPECT_EQ(times({"exec", "--ranks", "3", "--collective", "reducescatter", "--algorithm",
                   "halving_doubling", "--size", "1KiB"},
                  not_power),
            1);
}

/// On a terminal both streams are one.
TEST(App, TablesStayWholeWhenAProgramIsRefused) {
  const std::string file = temp_file("race.esp");
  write_file(file,
             "program mine\ncollective allreduce\nranks 2\nunits 1\n"
             "0: r1.tmp[0] <- r0.in[0]\n"
             "1: r1.out[0] <- r1.in[0] + r1.tmp[0]\n"
             "2: r0.out[0] <- r0.in[0] + r1.in[0]\n");
  const auto on_a_terminal = [&](std::vector<std::string> words) {
    words.insert(words.end(),
                 {"--algorithm", "ring", file, "--size", "1KiB,2KiB", "--topology", "full:n=2"});
    std::ostringstream terminal;
    EXPECT_EQ(run_app(words, terminal, terminal), 1) << terminal.str();
    return terminal.str();
  };
  for (const char* verb : {"sim", "compare", "exec"}) {
    const std::string shown = on_a_terminal({verb});
    const std::size_t error = shown.find("error: op 1");
    EXPECT_NE(error, std::string::npos) << shown;
    EXPECT_LT(shown.rfind("\n        2048  "), error) << shown;
    EXPECT_EQ(shown.find("error: op 1", error + 1), std::string::npos) << "twice: " << shown;
  }
}

TEST(App, TheFastestIsExplainedWhereItIsMarked) {
  const auto table = [](const char* profile, const char* algorithms) {
    return run({"sim", "--topology", "full:n=4", "--size", "1KiB", "--collective", "allreduce",
                "--profile", profile, "--algorithm", "ring", algorithms})
        .out;
  };
  const std::string two = table("ideal", "optimal");  // theory is exact
  EXPECT_LT(two.find("fabric  *\n"), two.find("# * is the fastest\n")) << two;
  EXPECT_EQ(two.find('~'), std::string::npos) << two;
  EXPECT_EQ(table("kernel", "parameter_server:host=1").find('*'), std::string::npos);
}

TEST(App, WhatCannotBeToldFromTheFastestIsMarked) {
  // 6.8 and 6.9 us differ by less than 30 %, which is what is expected where nothing was compared.
  const std::string shown = run({"sim", "--topology", "dgx-a100", "--size", "8KiB", "--algorithm",
                                 "all_pairs", "blink", "ring"})
                                .out;
  EXPECT_NE(shown.find("\n# +-30 %: estimate: "), std::string::npos) << shown;
  const std::size_t first = shown.find("  ~\n");
  EXPECT_NE(first, std::string::npos) << shown;
  EXPECT_NE(shown.find("  ~\n", first + 1), std::string::npos) << shown;
  EXPECT_NE(shown.find("\n# ~ may be the fastest: "), std::string::npos) << shown;
  EXPECT_EQ(shown.find('*'), std::string::npos) << shown;
}

TEST(App, TablesSayWhatABenchmarkPrintsAndHowFastNcclIs) {
  const auto shown = [](const char* launch, const char* profile) {
    return run({"sim", "--topology", "dgx-a100", "--size", "1KiB", "--algorithm", "nccl_rings",
                "--profile", profile, "--launch", launch});
  };
  const Result single = shown("single", "nccl");
  EXPECT_NE(single.out.find(", launch single\n"), std::string::npos) << single.out;
  EXPECT_NE(single.out.find(" bench "), std::string::npos) << single.out;
  EXPECT_NE(single.out.find(" vs nccl "), std::string::npos) << single.out;
  EXPECT_NE(single.out.find("by one process for all"), std::string::npos);
  EXPECT_EQ(shown("per_gpu", "ideal").out.find("bench"), std::string::npos);
  const Result wrong = shown("both", "nccl");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("single, per_gpu, graph"), std::string::npos) << wrong.err;
}

TEST(App, TunePrintsWhereToKeepNccl) {
  const Result done = run({"tune", "--topology", "dgx-a100", "--size", "1KiB,64MiB", "--algorithm",
                           "ring", "--profile", "nccl"});
  EXPECT_EQ(done.code, 0) << done.err;
  // A ring under NCCL's own profile is one of NCCL's rings.
  EXPECT_NE(done.out.find("# Keep NCCL for "), std::string::npos) << done.out;
}

TEST(App, ShowsAndVerifiesWhatNcclMakesOfAMessage) {
  const auto shown = [](const std::string& size) {
    return run({"show", "nccl", "--topology", "dgx-a100", "--size", size});
  };
  EXPECT_NE(shown("1KiB").out, shown("64MiB").out);
  EXPECT_EQ(shown("1KiB,64MiB").code, 2);
  const Result verified =
      run({"verify", "--algorithm", "nccl", "--topology", "dgx-a100", "--size", "1KiB"});
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_EQ(run({"verify", temp_file("none.esp"), "--size", "1KiB"}).code, 2);
}

TEST(App, SaysHowLittleAnyScheduleGainsOverNccl) {
  const auto shown = [](const std::string& algorithm, const std::string& size) {
    return run({"sim", "--topology", "dgx-a100", "--size", size, "--algorithm", algorithm}).out;
  };
  // NCCL takes 8425 us; 1 GiB at 132 GB/s would take 8149. A faster runtime says the same of it.
  const std::string hardly = "no schedule is more than x1.0";
  for (const std::string algorithm : {"nccl", "ring"}) {
    EXPECT_THAT(shown(algorithm, "1GiB"), testing::HasSubstr(hardly + "3 as fast as NCCL at 1GiB"));
  }
  EXPECT_THAT(shown("nccl", "1MiB"), testing::Not(testing::HasSubstr(hardly)));
}

TEST(App, ATableSaysOfItsRowsWhereToKeepNccl) {
  const Result done = run({"tune", "--topology", "dgx-h100", "--size", "1MiB,1GiB", "--algorithm",
                           "nvls", "nccl", "--output", "-", "--json", temp_file("kept.json")});
  EXPECT_EQ(done.code, 0) << done.err;
  const std::size_t large = done.out.find("up_to: 1GiB, algorithm: \"nvls");
  ASSERT_NE(large, std::string::npos) << done.out;
  EXPECT_NE(done.out.find("# keep NCCL for 1GiB: ", large), std::string::npos) << done.out;
}

/// Whether by worker processes or not, with a budget or without.
TEST(App, SimulatesWithTheEngineThatWasAskedFor) {
  for (const std::string engine : {"classes", "simgrid"}) {
    for (const std::string budget : {"", "100"}) {
      std::vector<std::string> words = {
          "sim",     "--topology", "dgx-a100", "--algorithm", "ring",   "--size", "1MiB",
          "--chunk", "0",          "--engine", engine,        "--json", "-"};
      if (!budget.empty()) words.insert(words.end(), {"--budget", budget});
      const Result result = run(words);
      EXPECT_THAT(result.out, testing::HasSubstr("\"engine\": \"" + engine + "\"")) << budget;
    }
  }
}

TEST(App, APlanThatWasSavedIsAnAlgorithm) {
  const std::string saved = temp_file("best.esp");
  const std::vector<std::string> where = {"--topology", "dgx1-v100", "--gpus",
                                          "0-3",        "--links",   "fabric"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), where.begin(), where.end());
    return run(words);
  };
  EXPECT_EQ(with({"plan", "--algorithm", "optimal:strips=0", "--save", saved}).code, 0);
  const auto time_of = [&](const std::string& algorithm) {
    const Result result = with({"sim", "--algorithm", algorithm, "--size", "64MiB", "--json", "-"});
    EXPECT_EQ(result.code, 0) << result.err;
    return figures(result.out);
  };
  EXPECT_EQ(time_of(saved), time_of("optimal:strips=0,fabric=0"));
  const std::string table = temp_file("table.yaml");
  EXPECT_EQ(
      with({"tune", "--algorithm", saved, "chain", "--size", "64MiB", "--output", table}).code, 0);
  EXPECT_NE(read_file(table).find("algorithm: \"" + saved + "\""), std::string::npos);
  EXPECT_EQ(time_of("tuned:" + table), time_of(saved));
}

TEST(App, ReferenceOfTheCommandLineIsFresh) {
  const std::string path = std::string(ESPALIER_SOURCE_DIR) + "/docs/cli.md";
  const char* update = std::getenv("ESPALIER_UPDATE");
  if (update != nullptr && std::string_view(update) == "1") write_file(path, help_markdown());
  EXPECT_EQ(read_file(path), help_markdown()) << "espalier help --markdown > docs/cli.md";
}

/// And every expectation of the built-in scenarios is met, of claims or not.
TEST(App, TableOfClaimsIsFresh) {
  std::vector<std::string> words = {"run"};
  for (const ScenarioEntry& entry : builtin_scenarios()) {
    const Scenario scenario = parse_scenario(entry.yaml, entry.name);
    const bool expects = std::ranges::any_of(
        scenario.blocks, [](const ScenarioBlock& block) { return !block.expectations.empty(); });
    if (expects) words.push_back(entry.name);
  }
  words.insert(words.end(), {"--claims", "-"});
  const Result result = run(words);
  EXPECT_EQ(result.code, 0) << result.err;
  const std::string path = std::string(ESPALIER_SOURCE_DIR) + "/docs/claims.md";
  const std::string page = read_file(path);
  const std::string mark = "<!-- written by espalier run --claims -->\n";
  const std::size_t table = page.find(mark);
  ASSERT_NE(table, std::string::npos);
  const std::string fresh = page.substr(0, table + mark.size()) + result.out;
  const char* update = std::getenv("ESPALIER_UPDATE");
  if (update != nullptr && std::string_view(update) == "1") write_file(path, fresh);
  EXPECT_EQ(read_file(path), fresh) << "ESPALIER_UPDATE=1 writes it";
}

TEST(App, TablesOfMeasuredTimesAreFresh) {
  const Result result = run({"run", "validation", "--validation", "-"});
  EXPECT_EQ(result.code, 0) << result.err;
  const std::string path = std::string(ESPALIER_SOURCE_DIR) + "/docs/validation.md";
  const std::string page = read_file(path);
  const std::string begin = "<!-- written by espalier run validation --validation -->\n";
  const std::string end = "<!-- end -->\n";
  const std::size_t first = page.find(begin);
  const std::size_t last = page.find(end);
  ASSERT_NE(first, std::string::npos);
  ASSERT_NE(last, std::string::npos);
  const std::string fresh = page.substr(0, first + begin.size()) + result.out + page.substr(last);
  const char* update = std::getenv("ESPALIER_UPDATE");
  if (update != nullptr && std::string_view(update) == "1") write_file(path, fresh);
  EXPECT_EQ(read_file(path), fresh) << "ESPALIER_UPDATE=1 writes it";
}

/// The papers' claims by letter; a page that drops one says less than it seems to.
TEST(App, EveryClaimHasARowAndEveryRowAVerdict) {
  const std::string page = read_file(std::string(ESPALIER_SOURCE_DIR) + "/docs/claims.md");
  const std::set<std::string> verdicts = {"reproduced", "direction only",
                                          "not explained by the model"};
  std::set<std::string> claims;
  std::istringstream table(page.substr(page.find("<!-- written by")));
  std::string line;
  for (int skipped = 0; skipped < 3; ++skipped) std::getline(table, line);  // mark and header
  while (std::getline(table, line)) {
    const std::vector<std::string> cells = split(line, '|');
    ASSERT_GE(cells.size(), 9U) << line;
    claims.emplace(trim(cells[1]));
    EXPECT_TRUE(verdicts.contains(std::string(trim(cells[6])))) << line;
  }
  const std::map<std::string, char> last_of = {
      {"S0-", 'c'}, {"S1-", 'i'}, {"S2-", 'c'}, {"S3-", 'c'}, {"S4-", 'd'}};
  std::set<std::string> all;
  for (const auto& [paper, last] : last_of) {
    for (char letter = 'a'; letter <= last; ++letter) all.insert(paper + letter);
  }
  EXPECT_EQ(claims, all);
}

TEST(App, TrainingIsSavedAsAProgramThatVerifyAccepts) {
  const std::string file = temp_file("training.esp");
  const Result saved = run({"train", "--model", "lenet", "--topology", "dgx1-v100", "--gpus", "0-2",
                            "--batch", "64", "--compute-ms", "5", "--fusion", "0", "--algorithm",
                            "knomial+pipelined_chain", "--save", file});
  EXPECT_EQ(saved.code, 0) << saved.err;
  const Result verified = run({"verify", file});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  EXPECT_NE(verified.out.find("allreduce"), std::string::npos) << verified.out;
}

TEST(App, ExecPrintsTheTableOfNcclTests) {
  const Result result = run({"exec", "--ranks", "3", "--algorithm", "ring", "--size", "4,1200",
                             "--dtype", "half", "--op", "max", "--iters", "2"});
  EXPECT_EQ(result.code, 0) << result.err;
  // size, elements, type, operator, root, then time, algbw, busbw, #wrong twice.
  const std::string half = R"( +[0-9.e+]+ +[0-9.]+ +[0-9.]+ +0)";
  EXPECT_TRUE(std::regex_search(result.out,
                                std::regex("\n +1200 +600 +half +max +-1" + half + half + "\n")))
      << result.out;
  EXPECT_TRUE(std::regex_search(result.out, std::regex("\n +4 +2 +half +max +-1" + half + half)))
      << result.out;
  EXPECT_NE(result.out.find("# Out of bounds values : 0 OK\n"), std::string::npos);
  EXPECT_TRUE(std::regex_search(result.out, std::regex("# Avg bus bandwidth    : [0-9.e-]+\n")));
}

TEST(App, ExecRunsInPlaceOnly) {
  const std::vector<std::string> words = {"exec", "--ranks", "3", "--algorithm", "ring", "--size",
                                          "1200", "--iters", "2", "--in-place"};
  const Result result = run(words);
  EXPECT_EQ(result.code, 0) << result.err;
  const std::string figures = R"( +[0-9.e+]+ +[0-9.]+ +[0-9.]+ +0)";
  EXPECT_TRUE(std::regex_search(
      result.out, std::regex("\n +1200 +300 +float +sum +-1 +N/A +N/A +N/A +N/A" + figures + "\n")))
      << result.out;
  std::vector<std::string> as_json = words;
  as_json.insert(as_json.end(), {"--json", "-"});
  const nlohmann::json report = nlohmann::json::parse(run(as_json).out)["results"].at(0);
  EXPECT_TRUE(report.at("in_place").get<bool>());
  EXPECT_EQ(report.at("wrong"), 0);
}

/// A file is for one kind of buffers, and nothing else may run in its place.
TEST(App, ExecInPlaceRefusesAFileForOtherBuffers) {
  const std::string inputs = std::string(ESPALIER_SOURCE_DIR) + "/tests/golden/inputs/";
  EXPECT_EQ(run({"exec", "--algorithm", inputs + "in_place.esp", "--size", "1200", "--iters", "1",
                 "--in-place"})
                .code,
            0);
  const Result refused = run({"exec", "--algorithm", inputs + "right.esp", "--size", "1200",
                              "--iters", "1", "--in-place"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.err.find("right.esp"), std::string::npos) << refused.err;
}

TEST(App, ExecOnGpusSaysWhatIsMissing) {
  if (const auto reason = cuda_unavailable()) {
    const Result result = run({"exec", "--backend", "cuda", "--devices", "0,0"});
    EXPECT_EQ(result.code, 3);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.substr(0, result.err.find('\n')), "error: " + *reason);
  } else {
    const Result result = run({"exec", "--backend", "cuda", "--devices", "0,0", "--algorithm",
                               "ring", "--size", "1200", "--iters", "2"});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_NE(result.out.find("#   r1 on GPU 0 ("), std::string::npos) << result.out;
  }
}

TEST(App, ExecCountsElementsOfABlock) {
  // Of a blocked collective the size is the whole message and the count that of one rank.
  const Result result = run({"exec", "--ranks", "4", "--collective", "allgather", "--algorithm",
                             "ring", "--size", "1600", "--iters", "1", "--no-check"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(std::regex_search(result.out, std::regex("\n +1600 +100 +float +none +-1 .* N/A\n")))
      << result.out;
}

TEST(App, ExecTakesTheMachineItIsGiven) {
  const Result result =
      run({"exec", "--topology", "ring:n=3,host_gbps=8", "--gpus", "2,0", "--algorithm",
           "parameter_server:host=1", "--size", "1MiB", "--iters", "1"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("GPUs 2,0 (2 ranks)"), std::string::npos) << result.out;
}

TEST(App, QuickstartEndsWithABoundAndAPicture) {
  const std::string path = std::string(ESPALIER_SOURCE_DIR) + "/scenarios/quickstart.yaml";
  const Result result = run({"run", path});
  EXPECT_EQ(result.code, 0) << result.err;
  for (const char* wanted : {"All eight GPUs", "\n# Bound (", "  [====",
                             "# Out of bounds values : 0 OK", "executed with 0 wrong elements\n"}) {
    EXPECT_NE(result.out.find(wanted), std::string::npos) << wanted;
  }
}

TEST(App, ListsSayEverythingThatIsKnown) {
  const std::string algorithms = run({"list", "algorithms"}).out;
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const std::string& text :
         {algorithm->name, algorithm->summary, algorithm->constraints, algorithm->paper}) {
      EXPECT_NE(algorithms.find(text), std::string::npos) << algorithm->name << ": " << text;
    }
    for (const AlgorithmParameter& parameter : algorithm->parameters) {
      EXPECT_NE(algorithms.find(parameter.meaning), std::string::npos) << parameter.meaning;
    }
  }
  const std::string topologies = run({"list", "topologies"}).out;
  for (const CatalogueEntry& entry : catalogue()) {
    EXPECT_NE(topologies.find(entry.name + " "), std::string::npos) << entry.name;
    EXPECT_NE(topologies.find(entry.title), std::string::npos) << entry.title;
  }
  EXPECT_NE(topologies.find("latency_us=0"), std::string::npos);
}

TEST(App, CertificatesAreThere) {
  const Result result = run({"sim", "--topology", "dgx1-v100", "--size", "1MiB"});
  EXPECT_EQ(result.code, 0);
  EXPECT_NE(result.out.find("the links out of"), std::string::npos) << result.out;
}

TEST(App, ShowWritesWhatVerifyReads) {
  const Result shown = run({"show", "double_binary_tree", "--ranks", "5", "--chunks", "3"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  const std::string file = temp_file("app_test.txt");
  write_file(file, shown.out);
  const Result verified = run({"verify", file});
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_EQ(run({"show", file}).out, shown.out);
  std::remove(file.c_str());
}

TEST(App, EveryAlgorithmVerifiesOnOddRanks) {
  const Result result = run({"verify", "--algorithm", "all", "--ranks", "7"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out.find("FAILED"), std::string::npos);
}

TEST(App, JsonSaysWhatWasSkippedAndWhy) {
  const Result some = run({"sim", "--topology", "full:n=3", "--algorithm", "ring",
                           "halving_doubling", "--collective", "allgather", "--json", "-"});
  EXPECT_EQ(some.code, 3);
  EXPECT_NE(some.out.find(R"("algorithm": "ring")"), std::string::npos) << some.out;
  EXPECT_NE(some.out.find(R"(    {
      "kind": "skipped",
      "topology": "full:n=3",
      "profile": "kernel",
      "links_scope": "all",
      "gpus": null,
      "ranks": 3,
      "in_place": false,
      "collective": "allgather",
      "algorithm": "halving_doubling",
      "refused": false,
      "reason": )"),
            std::string::npos)
      << some.out;
  const Result none = run({"sim", "--topology", "full:n=3", "--algorithm", "halving_doubling",
                           "--collective", "allgather", "--json", "-"});
  EXPECT_EQ(none.code, 3);
  const nlohmann::json results = nlohmann::json::parse(none.out)["results"];
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0]["kind"], "skipped");
}

TEST(App, AFolderMayHoldMachinesBesideScenarios) {
  const std::filesystem::path folder = temp_file("beside");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string dir = folder.string();
  write_file(dir + "/machine.yaml",
             read_file(std::string(ESPALIER_SOURCE_DIR) + "/topologies/dgx1-v100.yaml"));
  EXPECT_EQ(run({"run", dir}).code, 2) << "nothing else is there";
  write_file(dir + "/study.yaml", R"(schema: espalier.scenario/1
name: study
title: t
blocks:
  - {title: b, topology: machine.yaml, collective: allreduce, sizes: 1MiB, algorithms: ring}
)");
  const Result result = run({"run", dir});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(
      result.err.find("skipped '" + dir + "/machine.yaml', whose schema is espalier.topology/1"),
      std::string::npos)
      << result.err;
  EXPECT_NE(result.out.find("# study: 1 program verified and simulated\n"), std::string::npos)
      << result.out;
  // What is of no schema, or of one that is not known, is a mistake.
  write_file(dir + "/other.yaml", "schema: espalier.topologies/1\n");
  EXPECT_EQ(run({"run", dir}).code, 2);
  write_file(dir + "/other.yaml", "name: nothing\n");
  EXPECT_EQ(run({"run", dir}).code, 2);
}

TEST(App, CellsOfTheTableOfClaimsStayCells) {
  const std::string file = temp_file("cells.yaml");
  write_file(file, R"(schema: espalier.scenario/1
name: a|b
title: t
blocks:
  - title: b
    topology: ring:n=2,gbps=10
    collective: allreduce
    sizes: 1000000
    algorithms: ring
    profile: ideal
    expect:
      - {title: 'a\|b', claim: S9-a, measure: time_s, of: {}, at_least: 0}
)");
  EXPECT_NE(
      run({"run", file, "--claims", "-"})
          .out.find(R"(| S9-a | a\\\|b | - | 0.0001 | at least 0 | direction only |  | `a\|b` |)"),
      std::string::npos)
      << run({"run", file, "--claims", "-"}).out;
}

TEST(App, RowsTellWhichQuestionTheyAnswer) {
  const std::string file = temp_file("telling.yaml");
  write_file(file, R"(schema: espalier.scenario/1
name: telling
title: t
blocks:
  - title: "one, two"
    topology: dgx1-v100
    gpus: "0-2"
    collective: allreduce
    sizes: 1MiB
    algorithms: ring
    links: fabric
  - title: b
    topology: dgx1-v100
    gpus: "0-2"
    relay: "3"
    collective: allgather
    sizes: 1MiB
    algorithms: [ring, halving_doubling]
)");
  const std::string csv = run({"run", file, "--csv", "-"}).out;
  std::vector<std::string> ends;
  for (const std::string& row : split(csv, '\n')) {
    // The last six cells; titles may hold commas.
    const std::size_t mark = row.find("telling,");
    ends.push_back(mark == std::string::npos ? "" : row.substr(mark));
  }
  EXPECT_EQ(csv.substr(0, csv.find('\r')).substr(csv.find(",scenario")),
            ",scenario,block,links_scope,relays,refused,skipped");
  ASSERT_EQ(ends.size(), 5U) << csv;  // header, three rows, and what follows the last
  EXPECT_EQ(ends[1], "telling,\"one, two\",fabric,,false,\r");
  EXPECT_EQ(ends[2], "telling,b,all,3,false,\r");
  EXPECT_EQ(
      ends[3],
      "telling,b,all,3,false,\"allgather needs a power of two as the number of ranks, not 3\"\r");
  const std::string json = run({"run", file, "--json", "-"}).out;
  EXPECT_NE(json.find(R"("kind": "skipped",
      "scenario": "telling",
      "block": "b",)"),
            std::string::npos)
      << json;
}

TEST(App, JsonHasWhatScenariosExpect) {
  const std::string file = temp_file("expecting.yaml");
  write_file(file, R"(schema: espalier.scenario/1
name: expecting
title: t
blocks:
  - title: b
    topology: ring:n=2,gbps=10
    collective: allreduce
    sizes: 1000000
    algorithms: [ring, direct]
    profile: ideal
    expect:
      - {title: slow, measure: time_s, of: {algorithm: ring}, at_least: 1}
      - {title: none, of: {algorithm: ring}, over: {algorithm: ring}, at_least: 1, at_most: 1}
)");
  // direct is no allreduce.
  EXPECT_EQ(run({"run", file, "--json", "-"}).code, 2);
  write_file(file, std::regex_replace(read_file(file), std::regex(", direct"), ""));
  const Result result = run({"run", file, "--json", "-"});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.out.find(R"(      "kind": "expectation",
      "scenario": "expecting",
      "title": "slow",
      "claim": null,
      "measure": "time_s",
      "ratio": false,
      "ours": 0.0001,
      "paper": null,
      "tolerance": null,
      "at_least": 1.0,
      "at_most": null,
      "verdict": "does not hold",
      "as_expected": false
    },)"),
            std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find(R"("as_expected": true)"), std::string::npos);
}

TEST(App, AnUnwritableFileIsBadInput) {
  const Result result =
      run({"sim", "--topology", "full:n=2", "--size", "1", "--json", "/nonexistent/folder/r.json"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");  // noticed before anything is simulated
  EXPECT_EQ(result.err,
            "error: --json: can't write '/nonexistent/folder/r.json': No such file or directory\n");
}

TEST(App, FoldersOfScenariosRunInOrder) {
  const std::string folder = std::string(ESPALIER_SOURCE_DIR) + "/tests/golden/inputs";
  // One of them is wrong: nothing runs, and the message says where.
  const Result result = run({"run", folder});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("wrong.yaml:5:15: error: unknown topology"), std::string::npos);
}

TEST(App, FailedWritesAreNoticed) {
  std::ostringstream out;
  std::ostringstream err;
  out.setstate(std::ios::badbit);
  EXPECT_EQ(run_app({"list"}, out, err), 3);
  EXPECT_EQ(err.str(), "error: cannot write the results\n");
}

}  // namespace
}  // namespace espalier
