// SPDX-License-Identifier: Apache-2.0
// fit on the command line: what it writes is taken back. Where ESPALIER_CORPUS names a folder of
// public files, its logs are fitted, too.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
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
using Json = nlohmann::json;

class Fit : public WithFiles {};

const std::string kLog =
    std::string(ESPALIER_SOURCE_DIR) + "/tests/scenarios/measured/a100x8_all_reduce.txt";

/// A log whose ranks were on two hosts, four on each.
std::string on_two_hosts(std::string log) {
  std::string listed = "# Using devices\n";
  for (int rank = 0; rank < 8; ++rank) {
    listed += fmt::format("#  Rank {:2} Group  0 Pid {} on host{} device {:2} [0x0{}] A100-SXM4\n",
                          rank, 100 + rank, rank / 4, rank % 4, rank % 4);
  }
  return "# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 "
         "iters: 20 validation: 1\n#\n" +
         listed + log;
}

TEST_F(Fit, RefusesALogOfMoreHostsThanTheMachineHas) {
  const std::string log = file("two_hosts.txt");
  write_file(
      log,
      on_two_hosts(
          "#\n#       size         count      type   redop     time   algbw   "
          "busbw  error     time   algbw   busbw  error\n"
          "        8  2  float  sum  24.1  0.00  0.00  0e+00  24.0  0.00  0.00  0e+00\n"
          "     1024  256  float  sum  25.1  0.04  0.07  0e+00  25.0  0.04  0.07  0e+00\n"
          "    32768  8192  float  sum  30.1  1.09  1.91  0e+00  30.0  1.09  1.91  0e+00\n"
          "   131072  32768  float  sum  40.1  3.27  5.72  0e+00  40.0  3.28  5.73  0e+00\n"
          "  1048576  262144  float  sum  75.1  13.96  24.43  0e+00  75.0  13.98  24.47  0e+00\n"));
  const Spoken refused = run({"fit", log, "--topology", "dgx-a100"});
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("the ranks of the log were on 2 hosts, and dgx-a100 has one"));
  EXPECT_EQ(refused.out, "");
}

TEST_F(Fit, WritesNoFileWhereNothingWasFitted) {
  const std::string profile = file("nothing.yaml");
  const Spoken refused =
      run({"fit", kLog, "--topology", "dgx-a100", "--budget", "0", "--output", profile});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("no constant was fitted, so that there is no profile to write"));
  EXPECT_FALSE(std::filesystem::exists(profile));
}

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

/// A log as nccl-tests writes it, of times in seconds by size. `head`: lines before the table;
/// `share`: bus bandwidth as a share of size / time.
std::string log_of(const std::string& head, const std::map<std::int64_t, double>& times_s,
                   double share) {
  std::string log = head +
                    "#       size         count      type   redop    root     time   algbw   "
                    "busbw #wrong\n";
  const int parts = share < 1 ? 8 : 1;  // an allgather counts what one of 8 ranks gives
  for (const auto& [bytes, time_s] : times_s) {
    const double algbw = static_cast<double>(bytes) / time_s * 1e-9;
    log += fmt::format("{} {} float {} -1 {:.2f} {:.2f} {:.2f} 0\n", bytes, bytes / 4 / parts,
                       share > 1 ? "sum" : "none", time_s * 1e6, algbw, algbw * share);
  }
  return log;
}

/// The ranks of a log, one process for each.
std::string ranks_of(int ranks, const std::string& model) {
  std::string listed =
      "# nThread 1 nGpus 1 warmup iters: 5 iters: 20 validation: 1\n#\n"
      "# Using devices\n";
  for (int rank = 0; rank < ranks; ++rank) {
    listed += fmt::format("#  Rank {:2} Group  0 Pid {} on node device {:2} [0x{:02x}] {}\n", rank,
                          100 + rank, rank, rank, model);
  }
  return listed;
}

class Measured : public Fit {
 protected:
  /// What the simulator says under a profile of other constants, with noise.
  std::map<std::int64_t, double> times_s(const std::string& topology, const std::string& collective,
                                         const std::string& constants) {
    write_file(file("truth.yaml"),
               "{schema: espalier.profiles/1, profiles: {x: {like: nccl, " + constants + "}}}\n");
    const Spoken done = run({"sim", "--topology", topology, "--algorithm", "nccl", "--collective",
                             collective, "--size", "1KiB..1GiB", "--profile", file("truth.yaml"),
                             "--json", file("truth.json")});
    EXPECT_EQ(done.code, 0) << done.err;
    std::mt19937 random(33);
    std::normal_distribution<double> deviation(0, 0.02);
    std::map<std::int64_t, double> times;
    const Json simulated = Json::parse(read_file(file("truth.json")));
    for (const Json& row : simulated["results"]) {
      times[row["size_bytes"]] = row["benchmark_s"].get<double>() * std::exp(deviation(random));
    }
    return times;
  }
};

/// Of RCCL one version is known, which choices do not name.
TEST_F(Measured, LogsOfRcclAreFitted) {
  const std::vector<std::pair<std::string, double>> tests = {
      {"allgather", 7. / 8}, {"allreduce", 7. / 4}, {"broadcast", 1}};
  std::vector<std::string> words = {"fit", "--topology", "mi300x", "--output", file("r.yaml")};
  const std::map<std::string, std::string> names = {
      {"allgather", "all_gather"}, {"allreduce", "all_reduce"}, {"broadcast", "broadcast"}};
  for (const auto& [collective, share] : tests) {
    const std::string log = file(collective + ".log");
    const auto times =
        times_s("mi300x", collective, "call_overhead_us: 9, links: {xgmi3: {efficiency: 0.5}}");
    write_file(log,
               log_of(fmt::format("# Collective test starting: {}_perf\n", names.at(collective)) +
                          ranks_of(8, "AMD Instinct MI300X") + "# RCCL version 2.21.5\n",
                      times, share));
    words.push_back(log);
  }
  const Spoken fitted = run(words);
  EXPECT_EQ(fitted.code, 0) << fitted.err;
  EXPECT_THAT(fitted.err, Not(HasSubstr("taken for 2.30"))) << fitted.err;
  EXPECT_THAT(fitted.out, HasSubstr("\n# links.xgmi3.efficiency "));
  EXPECT_THAT(read_file(file("r.yaml")), HasSubstr("simulated as RCCL 2.21"));
  const Spoken used = run({"sim", "--topology", "mi300x", "--algorithm", "nccl", "--size", "1MiB",
                           "--profile", file("r.yaml")});
  EXPECT_EQ(used.code, 0) << used.err;
}

TEST_F(Measured, LogsOfRcclHaveNoOtherVersion) {
  const auto times = times_s("mi300x", "allgather", "call_overhead_us: 9");
  const std::string log = file("a.log");
  const std::string head =
      "# Collective test starting: all_gather_perf\n" + ranks_of(8, "AMD Instinct MI300X");
  const auto noted = [&](const std::string& version, const std::vector<std::string>& more) {
    write_file(log, log_of(head + version, times, 7. / 8));
    std::vector<std::string> words = {"fit", log, "--topology", "mi300x", "--budget", "0"};
    words.insert(words.end(), more.begin(), more.end());
    const Spoken done = run(words);
    EXPECT_EQ(done.code, 0) << done.err;
    return done.err;
  };
  EXPECT_THAT(noted("", {}), HasSubstr("the log does not name its RCCL: taken for 2.21.5"));
  EXPECT_THAT(noted("# RCCL version 2.22.3\n", {}),
              HasSubstr("the rules of RCCL 2.22.3 are not known: those of 2.21.5 are used"));
  EXPECT_THAT(noted("", {"--nccl-version", "2.21"}), Not(HasSubstr("2.21")));
  EXPECT_THAT(noted("", {"--algorithm", "nccl:version=2.21"}), Not(HasSubstr("RCCL")));
}

/// Tests that a log does not name are named with it.
TEST_F(Measured, LogsWithoutATestAreOfTheCollectiveBeforeTheirName) {
  const std::string gather = file("x=1.log"), reduce = file("y.log");
  write_file(gather, log_of(ranks_of(8, "NVIDIA A100-SXM4-40GB"),
                            times_s("dgx-a100", "allgather", "call_overhead_us: 9"), 7. / 8));
  write_file(reduce, log_of(ranks_of(8, "NVIDIA A100-SXM4-40GB"),
                            times_s("dgx-a100", "allreduce", "call_overhead_us: 9"), 7. / 4));
  const auto fit = [&](const std::vector<std::string>& logs) {
    std::vector<std::string> words = {"fit", "--topology", "dgx-a100", "--budget", "0"};
    words.insert(words.end(), logs.begin(), logs.end());
    return run(words);
  };
  const Spoken both = fit({"allgather=" + gather, "allreduce=" + reduce});
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("# allgather of 8 ranks"));
  EXPECT_THAT(both.out, HasSubstr("# allreduce of 8 ranks"));
  const Spoken neither = fit({gather, reduce});
  EXPECT_EQ(neither.code, 2);
  EXPECT_THAT(neither.err, HasSubstr("=" + gather + " says it"));
  EXPECT_THAT(fit({"nothing=" + gather}).err, HasSubstr("nothing=" + gather));
}

/// The links of hosts, which NCCL leaves alone within an NVSwitch, allow no more than NVLink does.
TEST_F(Measured, LogsOfNcclAreNotFasterThanItsLinks) {
  std::map<std::int64_t, double> times = times_s("dgx-a100", "allreduce", "call_overhead_us: 9");
  const double bytes = 1 << 30;
  times[1 << 30] = bytes * 7 / 4 / 310e9;
  const std::string log = file("fast.log");
  write_file(log, log_of("# Collective test starting: all_reduce_perf\n" +
                             ranks_of(8, "NVIDIA A100-SXM4-40GB"),
                         times, 7. / 4));
  const Spoken refused = run({"fit", log, "--topology", "dgx-a100"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("cannot be of dgx-a100, whose links allow 171"));
}

TEST_F(Measured, LogsOfGpusThatNobodyKnowsAreNoted) {
  const auto times = times_s("dgx-h100", "allgather", "call_overhead_us: 9");
  const std::string log = file("gh200.log");
  const auto noted = [&](const std::string& model, const std::vector<std::string>& verb) {
    write_file(log, log_of("# Collective test starting: all_gather_perf\n" + ranks_of(8, model),
                           times, 7. / 8));
    std::vector<std::string> words = verb;
    words.insert(words.end(), {log, "--topology", "dgx-h100", "--algorithm", "nccl"});
    return run(words).err;
  };
  const std::string note = "note: rank 0 ran on 'NVIDIA GH200 120GB', of which nothing is known";
  const std::vector<std::string> fit = {"fit", "--budget", "0"};
  const std::vector<std::string> compare = {"compare", "--size", "1KiB", "--no-nccl", "--measured"};
  for (const auto& verb : {fit, compare}) {
    EXPECT_THAT(noted("NVIDIA GH200 120GB", verb), HasSubstr(note));
    EXPECT_THAT(noted("NVIDIA H100 80GB HBM3", verb), Not(HasSubstr("rank 0")));
  }
  EXPECT_THAT(noted("NVIDIA A100-SXM4-40GB", compare),
              HasSubstr("note: rank 0 ran on 'NVIDIA A100-SXM4-40GB', and the GPUs of dgx-h100"));
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

TEST_F(Fit, AssumesNoNcclWhereTheAlgorithmNamesOne) {
  const auto noted = [](const std::vector<std::string>& algorithms) {
    std::vector<std::string> words = {"compare",    "--measured", kLog,
                                      "--topology", "dgx-a100",   "--size",
                                      "1KiB",       "--no-nccl",  "--algorithm"};
    words.insert(words.end(), algorithms.begin(), algorithms.end());
    return run(words).err;
  };
  EXPECT_THAT(noted({"nccl:version=2.10", "nccl:version=2.12"}), Not(HasSubstr("its NCCL")));
  EXPECT_THAT(noted({"nccl:version=2.10", "nccl"}), HasSubstr("taken for 2.30"));
  EXPECT_THAT(noted({"nccl:version=2.10", "ring"}), HasSubstr("taken for 2.30"));
  const std::string profile = file("fitted.yaml");
  const Spoken fitted = run({"fit", kLog, "--topology", "dgx-a100", "--algorithm",
                             "nccl:version=2.10", "--output", profile});
  EXPECT_THAT(fitted.err, Not(HasSubstr("its NCCL"))) << fitted.err;
  EXPECT_THAT(read_file(profile), HasSubstr("simulated as NCCL 2.10, launch single"));
  const Spoken unknown = run({"fit", kLog, "--topology", "dgx-a100", "--algorithm", "nccll"});
  EXPECT_THAT(unknown.err, HasSubstr("there is no algorithm 'nccll'"));
}

/// A log of one process on 8 A100 that has one time, of a broadcast, of so many calls.
std::string of_calls(const std::string& iterations) {
  std::string ranks;
  for (int rank = 0; rank < 8; ++rank) {
    ranks += fmt::format("#  Rank {:2} Group  0 Pid 1 on node device {:2} [0x0{}] A100-SXM4-40GB\n",
                         rank, rank, rank);
  }
  return "# Collective test starting: broadcast_perf\n# nThread 1 nGpus 8 minBytes 1073741824 "
         "maxBytes 1073741824 step: 2(factor) warmup iters: 5 " +
         iterations + "validation: 1\n#\n# Using devices\n" + ranks +
         "# NCCL version 2.10.3\n"
         "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
         "  1073741824  268435456  float  none  0  4769.2  225.14  225.14  0\n";
}

/// 1 GiB down a chain: what the first call takes longer is shared by all that are timed.
TEST_F(Fit, TakesAsManyCallsAsALogHasTimed) {
  const std::string log = file("broadcast.txt");
  const auto predicted_us = [&](const std::string& iterations, std::string* notes = nullptr) {
    write_file(log, of_calls(iterations));
    const Spoken done = run({"compare", "--measured", log, "--topology", "dgx-a100", "--algorithm",
                             "nccl", "--no-nccl", "--json", file("c.json")});
    EXPECT_EQ(done.code, 0) << done.err;
    if (notes != nullptr) *notes = done.err;
    const Json row = Json::parse(read_file(file("c.json")))["results"][0];
    return row["predicted_s"].get<double>() * 1e6;
  };
  std::string notes;
  const double of_20 = predicted_us("iters: 20 agg iters: 1 ", &notes);
  EXPECT_THAT(notes, Not(HasSubstr("calls were timed")));
  EXPECT_DOUBLE_EQ(predicted_us("", &notes), of_20);
  EXPECT_THAT(notes, HasSubstr("the log does not say how many calls were timed together: taken "
                               "for 20"));
  EXPECT_DOUBLE_EQ(predicted_us("iters: 5 agg iters: 4 "), of_20);
  // T of a call between others, and D that the first takes longer: T + D / 2, T + D / 20 and
  // T + D / 200, whose differences are as 1/2 - 1/20 to 1/20 - 1/200, 10 to 1.
  const double of_2 = predicted_us("iters: 2 ");
  const double of_200 = predicted_us("iters: 200 ");
  EXPECT_GT(of_20, of_200);
  EXPECT_NEAR((of_2 - of_20) / (of_20 - of_200), 10, 1e-3);
}

TEST_F(Fit, KeepsAllConstantsWithoutTime) {
  EXPECT_THAT(run({"fit", "--help"}).out, HasSubstr("has fit keep"));
  const Spoken kept = run({"fit", kLog, "--topology", "dgx-a100", "--budget", "0"});
  EXPECT_THAT(kept.out, HasSubstr("# no constant is determined by these times"));
}

TEST_F(Fit, IsNamedInTheHeadOfWhatRunsUnderIt) {
  write_file(file("mine.yaml"),
             "{schema: espalier.profiles/1, profiles: {x: {like: "
             "nccl_symmetric, call_overhead_us: 7}}}\n");
  const auto heads = [&](const std::string& algorithm) {
    return run({"sim", "--topology", "dgx-h100", "--algorithm", algorithm, "--size", "1KiB",
                "--profile", file("mine.yaml")})
        .out;
  };
  EXPECT_THAT(heads("nccl:registered=symmetric"), HasSubstr("# profile " + file("mine.yaml")));
  // What NCCL's other kernels cost is not in the file.
  EXPECT_THAT(heads("nccl"), HasSubstr("# profile nccl,"));
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
  // Two hosts are not one, even if that has GPUs enough.
  for (const char* other : {"h100_pair_g1.log", "h100_pair_g3.log", "oci_h100x16_allreduce.txt"}) {
    const Spoken refused =
        run({"fit", folder + other, "--topology", "dgx-h100", "--collective", "alltoall"});
    EXPECT_EQ(refused.code, 2) << other;
    EXPECT_THAT(refused.out, Not(HasSubstr("fitted"))) << other;
  }
  // None of these is of 8 A100 behind NVSwitches.
  for (const char* other : {"h100_scaling.txt", "h100_pair_g1.log", "oci_h100x16_allreduce.txt",
                            "a100x32_shortened.txt", "a100pcie8_torn.txt"}) {
    const Spoken refused = run({"fit", folder + other, "--topology", "dgx-a100"});
    EXPECT_EQ(refused.code, 2) << other;
    EXPECT_THAT(refused.err, HasSubstr(folder + other + ":")) << other;
    EXPECT_THAT(refused.out, Not(HasSubstr("fitted"))) << other;
  }
}

/// How far off what is simulated of the sendrecv of a log is, in the middle.
double off_by(const std::string& log, const std::string& profile, const std::string& json) {
  const Spoken compared =
      run({"compare", "--measured", log, "--topology", "dgx-h100:nodes=2", "--collective",
           "sendrecv", "--algorithm", "nccl", "--no-nccl", "--profile", profile, "--json", json});
  EXPECT_EQ(compared.code, 0) << compared.err;
  return Json::parse(read_file(json))["median_error"];
}

TEST_F(Fit, ToALogOfTwoHostsPredictsTwoOthers) {
  const char* const corpus = std::getenv("ESPALIER_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "ESPALIER_CORPUS does not name a folder of public files";
  const std::string folder = std::string(corpus) + "/nccl_tests_logs/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  // One GPU of each of two hosts of a cluster, cnode4-005 and 006, and three of each of two others,
  // 007 and 013, whose network is as slow.
  const std::string profile = file("fitted.yaml");
  const Spoken fitted = run({"fit", folder + "h100_pair_g1_b.log", "--topology", "dgx-h100:nodes=2",
                             "--output", profile});
  EXPECT_EQ(fitted.code, 0) << fitted.err;
  const std::string others = folder + "h100_pair_g3.log";
  const double before = off_by(others, "nccl", file("before.json"));
  const double after = off_by(others, profile, file("after.json"));
  std::cout << fmt::format("median error {:.3f} before, {:.3f} after the fit\n", before, after);
  EXPECT_GT(before, 0.3);
  EXPECT_LT(after, 0.08);
}

}  // namespace
}  // namespace espalier
