// SPDX-License-Identifier: Apache-2.0
// Files that commands write for other programs, and what is said of them.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "core/file.h"
#include "formats/format.h"
#include "formats/measured_tables.h"
#include "tests/cli/spoken.h"

namespace espalier {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class Exporting : public WithFiles {};

/// "... simulated with SIZE: A us as it is written, B us before": A and B.
std::pair<double, double> times_in(const std::string& said) {
  static const std::regex kTimes(
      "simulated with [^:]*: ([0-9.]+) us as it is written, (?:as before|([0-9.]+) us before)");
  std::smatch found;
  if (!std::regex_search(said, found, kTimes)) {
    ADD_FAILURE() << said;
    return {};
  }
  const double after = std::stod(found[1].str());
  return {after, found[2].matched ? std::stod(found[2].str()) : after};
}

double simulated_us(const std::vector<std::string>& words) {
  std::vector<std::string> all = words;
  all.insert(all.end(), {"--json", "-"});
  const Spoken said = run(all);
  EXPECT_EQ(said.code, 0) << said.err;
  return json::parse(said.out)["results"].at(0)["time_s"].get<double>() * 1e6;
}

/// What is said is what `sim` says of both.
TEST_F(Exporting, TheTimesSaidAreThoseOfTheFile) {
  const std::string plan = file("plan.esp"), xml = file("plan.xml");
  const std::vector<std::string> sim = {"sim", "--topology", "dgx-a100", "--size", "64MiB"};
  const auto time_of = [&](const std::string& algorithm) {
    std::vector<std::string> words = sim;
    words.insert(words.end(), {"--algorithm", algorithm});
    return simulated_us(words);
  };
  std::vector<std::string> words = sim;
  words.insert(words.end(), {"--algorithm", "halving_doubling", "--export", xml});
  const auto [after, before] = times_in(run(words).err);
  EXPECT_NEAR(after, time_of(xml), 0.005);
  EXPECT_NEAR(before, time_of("halving_doubling"), 0.005);
  EXPECT_GT(after, before);

  const std::vector<std::string> there = {"--topology", "dgx-a100", "--size", "64MiB"};
  ASSERT_EQ(run({"show", "halving_doubling", "--ranks", "8", "--save", plan}).code, 0);
  words = {"convert", plan, file("again.xml")};
  words.insert(words.end(), there.begin(), there.end());
  const auto [converted, given] = times_in(run(words).err);
  EXPECT_NEAR(converted, time_of(file("again.xml")), 0.005);
  EXPECT_NEAR(given, before, 0.005);
}

/// A library runs under a profile of its own, and what is written of it does not.
TEST_F(Exporting, TimesUnderOtherProfilesAreToldApart) {
  const Spoken said = run({"sim", "--topology", "mi300x", "--gpus", "0-4", "--collective",
                           "allgather", "--in-place", "--algorithm", "nccl", "--size", "1MiB",
                           "--no-nccl", "--export", file("nccl.xml")});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.err, testing::ContainsRegex("simulated with 1MiB: [0-9.]+ us as it is written "
                                               "under profile kernel, [0-9.]+ us before under "
                                               "profile nccl"));
}

TEST_F(Exporting, PlansAreTimedForTheSizeOfSim) {
  const std::string xml = file("plan.xml");
  const Spoken said = run(
      {"plan", "--topology", "dgx1-v100", "--gpus", "0-2", "--links", "fabric", "--export", xml});
  EXPECT_THAT(said.err, HasSubstr("simulated with 1GiB: "));
  const double after = simulated_us({"sim", "--topology", "dgx1-v100", "--gpus", "0-2", "--links",
                                     "fabric", "--algorithm", xml, "--size", "1GiB"});
  EXPECT_NEAR(times_in(said.err).first, after, 0.05);
}

TEST_F(Exporting, ChoicesAreListedWithBothTimes) {
  const std::string folder = file("plans");
  const Spoken said =
      run({"tune", "--topology", "dgx-a100", "--links", "fabric", "--size", "1MiB,64MiB",
           "--algorithm", "ring", "halving_doubling", "--export", folder, "--to", "msccl-xml"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.err, HasSubstr(".xml: simulated with 64MiB: "));
  const std::string list = read_file(folder + "/choices.txt");
  EXPECT_THAT(list, HasSubstr("file, algorithm, us, us as it is written\n"));
  static const std::regex kRow("[0-9]+ ([0-9]+) ([^ ]+) [^ ]+ [0-9.]+ ([0-9.]+)\n");
  int rows = 0;
  for (std::sregex_iterator row(list.begin(), list.end(), kRow), end; row != end; ++row, ++rows) {
    const double after =
        simulated_us({"sim", "--topology", "dgx-a100", "--links", "fabric", "--algorithm",
                      folder + "/" + (*row)[2].str(), "--size", (*row)[1].str()});
    EXPECT_NEAR(std::stod((*row)[3].str()), after, 0.006) << row->str();
  }
  EXPECT_GT(rows, 0) << list;
}

/// MSCCL uses a program for messages that its chunks divide, and else its library's own.
TEST_F(Exporting, WhatIsChosenForMscclIsUsed) {
  const std::string folder = file("plans");
  const Spoken said = run({"tune", "--topology", "dgx1-v100", "--no-nccl", "--size",
                           "100,64KiB,1MiB,64MiB", "--export", folder, "--to", "msccl-xml"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.err, HasSubstr("nothing is written for 100B: its reader would use nothing that "
                                  "msccl-xml can hold"));
  const std::string list = read_file(folder + "/choices.txt");
  static const std::regex kRow("([0-9]+) ([0-9]+) ([^ ]+) .*\n");
  std::set<std::string> sizes;
  for (std::sregex_iterator row(list.begin(), list.end(), kRow), end; row != end; ++row) {
    EXPECT_GT(std::stoi((*row)[1]), 100);
    const std::string xml = folder + "/" + (*row)[3].str();
    const Spoken used = run(
        {"sim", "--topology", "dgx1-v100", "--no-nccl", "--algorithm", xml, "--size", (*row)[2]});
    EXPECT_THAT(used.err, Not(HasSubstr("would not use it")));
    sizes.insert((*row)[2]);
  }
  EXPECT_EQ(sizes.count("67108864"), 1U) << list;
}

MeasuredTable only_table(const std::string& path) {
  const std::string text = read_file(path);
  const Format* format = recognise(text);
  EXPECT_TRUE(format != nullptr && format->name == "nccl-tests");
  const MeasuredTables read = format->read_tables({text, path});
  EXPECT_EQ(read.tables.size(), 1U);
  EXPECT_TRUE(read.tables.at(0).notes.empty()) << read.tables[0].notes[0];
  return read.tables.at(0);
}

TEST_F(Exporting, TablesOfNcclTestsHoldTheFiguresOfSim) {
  const std::string path = file("times.json");
  const Spoken said = run({"sim", "--topology", "dgx-a100:nodes=2", "--collective", "allgather",
                           "--algorithm", "ring", "--size", "1MiB,4MiB", "--in-place",
                           "--nccl-tests", path, "--json", file("own.json")});
  ASSERT_EQ(said.code, 0) << said.err;
  const MeasuredTable table = only_table(path);
  EXPECT_EQ(table.collective, Collective::allgather);
  EXPECT_EQ(table.ranks, 16);
  EXPECT_EQ(table.hosts(), 2);
  EXPECT_EQ(table.step, "4(factor)");
  const json own = json::parse(read_file(file("own.json")))["results"];
  ASSERT_EQ(table.rows.size(), own.size());
  double busbw_gbps = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const MeasuredRow& row = table.rows[i];
    EXPECT_EQ(row.bytes, own[i]["size_bytes"].get<std::int64_t>());
    EXPECT_EQ(row.count, row.bytes / 4 / 16);
    EXPECT_FALSE(row.out_of_place.has_value());
    // Six decimals of microseconds, and of GB/s; of calls back to back, as nccl-tests makes them.
    const double time_s = own[i]["benchmark_s"].get<double>();
    const double algbw_gbps = static_cast<double>(row.bytes) / time_s * 1e-9;
    EXPECT_NEAR(row.in_place->time_s, time_s, 0.6e-12);
    EXPECT_NEAR(row.in_place->algbw_gbps, algbw_gbps, 0.6e-6);
    EXPECT_NEAR(row.in_place->busbw_gbps, algbw_gbps * 15 / 16, 0.6e-6);
    EXPECT_FALSE(row.in_place->wrong.has_value());
    busbw_gbps += row.in_place->busbw_gbps / static_cast<double>(own.size());
  }
  EXPECT_NEAR(*table.average_busbw_gbps, busbw_gbps, 1.2e-6);
}

TEST_F(Exporting, TablesOfNcclTestsSayWhoLaunches) {
  const std::string path = file("times.json");
  for (const auto& [mode, gpus_per_thread, processes, graph] :
       {std::tuple("single", 8, 2U, 0), {"per_gpu", 1, 16U, 0}, {"graph", 1, 16U, 1}}) {
    const Spoken said = run({"sim", "--topology", "dgx-a100:nodes=2", "--algorithm", "nccl",
                             "--size", "1KiB", "--launch", mode, "--nccl-tests", path});
    ASSERT_EQ(said.code, 0) << said.err;
    const MeasuredTable table = only_table(path);
    EXPECT_EQ(table.ranks, 16);
    EXPECT_EQ(table.gpus_per_thread, gpus_per_thread) << mode;
    EXPECT_EQ(table.listed.size(), processes) << mode;
    EXPECT_EQ(table.graph, graph) << mode;
  }
}

TEST_F(Exporting, TablesOfNcclTestsHoldBothHalvesOfExec) {
  const std::string path = file("times.json");
  const Spoken said = run({"exec", "--ranks", "2", "--algorithm", "ring", "--size", "1KiB,2KiB",
                           "--iters", "2", "--nccl-tests", path});
  ASSERT_EQ(said.code, 0) << said.err;
  const MeasuredTable table = only_table(path);
  EXPECT_EQ(table.ranks, 2);
  EXPECT_EQ(table.iterations, 2);
  EXPECT_EQ(table.out_of_bounds, 0);
  ASSERT_EQ(table.rows.size(), 2U);
  for (const MeasuredRow& row : table.rows) {
    EXPECT_EQ(row.out_of_place->wrong, 0);
    EXPECT_EQ(row.in_place->wrong, 0);
    EXPECT_GT(row.in_place->time_s, 0);
  }
}

}  // namespace
}  // namespace espalier
