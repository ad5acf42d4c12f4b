// SPDX-License-Identifier: Apache-2.0
// fit on the command line: what it writes is taken back. Where ESPALIER_CORPUS names a folder of
// public files, its logs are fitted, too.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/words.h"
#include "tests/cli/spoken.h"

namespace espalier {
namespace {

using testing::HasSubstr;
using testing::Not;

class Fit : public WithFiles {};

const std::string kLog =
    std::string(ESPALIER_SOURCE_DIR) + "/tests/scenarios/measured/a100x8_all_reduce.txt";

TEST_F(Fit, SaysThatTimeRanOut) {
  const Spoken fitted =
      run({"fit", kLog, "--topology", "dgx-a100", "--budget", "0", "--json", file("fit.json")});
  EXPECT_EQ(fitted.code, 0) << fitted.err;
  EXPECT_THAT(fitted.out, HasSubstr("# Time ran out (--budget 0): more time may find constants"));
  EXPECT_THAT(fitted.out, HasSubstr("the time ran out before its effect was known"));
  EXPECT_THAT(read_file(file("fit.json")), HasSubstr("\"ran_out\": true"));
}

TEST_F(Fit, WritesAProfileThatOtherVerbsTake) {
  const std::string profile = file("fitted.yaml");
  const Spoken fitted = run({"fit", kLog, "--topology", "dgx-a100", "--output", profile});
  EXPECT_EQ(fitted.code, 0) << fitted.err;
  EXPECT_THAT(fitted.out, HasSubstr("# wrote " + profile + ": --profile " + profile + " uses it"));
  EXPECT_THAT(read_file(profile), HasSubstr("schema: espalier.profiles/1\n"));
  const std::vector<std::string> question = {"--topology", "dgx-a100", "--algorithm",
                                             "nccl",       "--size",   "1KiB"};
  for (const std::string& named : {profile, profile + ":ll"}) {
    std::vector<std::string> words = {"sim", "--profile", named};
    words.insert(words.end(), question.begin(), question.end());
    const Spoken done = run(words);
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr("# profile " + named + ", links all"));
  }
  const Spoken compared = run({"compare", "--measured", kLog, "--topology", "dgx-a100",
                               "--algorithm", "nccl", "--profile", profile});
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("# predicted: simulated, profile " + profile +
                                      ", launch single; measured"));
}

/// The log with all times in another unit: they are `factor` times as large.
std::string scaled(const std::string& log, double factor) {
  std::string text;
  for (const std::string& line : split(log, '\n')) {
    std::istringstream words(line);
    std::vector<std::string> cells;
    for (std::string word; words >> word;) cells.push_back(word);
    if (cells.size() != 9 || cells[0] == "#") {
      text += line + "\n";
      continue;
    }
    cells[5] = fmt::format("{:.2f}", std::stod(cells[5]) * factor);
    for (const std::size_t rate : {6, 7}) {
      cells[rate] = fmt::format("{:.6f}", std::stod(cells[rate]) / factor);
    }
    text += join(cells, " ") + "\n";
  }
  return text;
}

TEST_F(Fit, RefusesTimesInAnotherUnit) {
  const std::string log = file("nanoseconds.txt");
  write_file(log, scaled(read_file(kLog), 1000));
  const std::string profile = file("never.yaml");
  const Spoken refused = run({"fit", log, "--topology", "dgx-a100", "--output", profile});
  EXPECT_EQ(refused.code, 2) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("links.nvlink3.efficiency ends at 0.001, the limit of what is "
                                     "possible"));
  EXPECT_THAT(refused.err, HasSubstr("are times in microseconds"));
  EXPECT_FALSE(std::filesystem::exists(profile));
}

TEST_F(Fit, SaysWhichNcclItAssumes) {
  const std::vector<std::string> words = {"compare",    "--measured",  kLog,   "--topology",
                                          "dgx-a100",   "--algorithm", "nccl", "--size",
                                          "1KiB,32KiB", "--no-nccl"};
  EXPECT_THAT(run(words).err, HasSubstr("note: the log does not name its NCCL: taken for 2.30"));
  const auto with_version = [&](const std::string& version) {
    std::vector<std::string> more = words;
    more.insert(more.end(), {"--nccl-version", version});
    return run(more).err;
  };
  EXPECT_THAT(with_version("2.3"),
              HasSubstr("note: the rules of NCCL 2.3 are not known: those of 2.4 are used"));
  EXPECT_THAT(with_version("2.31"), HasSubstr("those of 2.30 are used"));
  EXPECT_THAT(with_version("2.30.7"), Not(HasSubstr("note: the rules")));
}

TEST_F(Fit, IsNamedInScenariosFromTheirFolder) {
  write_file(file("mine.yaml"),
             "{schema: espalier.profiles/1, profiles: {x: {like: nccl, call_overhead_us: 30}}}\n");
  write_file(file("study.yaml"), R"(
schema: espalier.scenario/1
name: study
title: A profile from a file
blocks:
  - title: One message
    topology: dgx-a100
    collective: allreduce
    algorithms: nccl_rings
    sizes: 1KiB
    profile: "./mine.yaml:ll"
)");
  const Spoken done = run({"run", file("study.yaml")});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("mine.yaml:ll"));
  EXPECT_THAT(done.out, HasSubstr("45.0"));  // 20.5 us under nccl:ll, and 30 - 5.5 us more
}

TEST_F(Fit, TakesPublicLogsOfMachinesThatTheCatalogueHas) {
  const char* const corpus = std::getenv("ESPALIER_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "ESPALIER_CORPUS does not name a folder of public files";
  const std::string folder = std::string(corpus) + "/nccl_tests_logs/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  const Spoken fitted = run({"fit", folder + "h100x4_allgather.txt",
                             folder + "h100x4_reducescatter.txt", "--topology", "dgx-h100"});
  EXPECT_EQ(fitted.code, 0) << fitted.err;
  EXPECT_THAT(fitted.out, HasSubstr("# fitted profile nccl on dgx-h100 to 56 times"));
  EXPECT_THAT(fitted.out, HasSubstr("\n# links.nvlink4.efficiency "));
  // None of these is of 8 A100 behind NVSwitches.
  for (const char* other : {"h100_scaling.txt", "h100_pair_g1.log", "oci_h100x16_allreduce.txt",
                            "a100x32_shortened.txt", "a100pcie8_torn.txt"}) {
    const Spoken refused = run({"fit", folder + other, "--topology", "dgx-a100"});
    EXPECT_EQ(refused.code, 2) << other;
    EXPECT_THAT(refused.err, HasSubstr(folder + other + ":")) << other;
    EXPECT_THAT(refused.out, Not(HasSubstr("fitted"))) << other;
  }
}

}  // namespace
}  // namespace espalier
