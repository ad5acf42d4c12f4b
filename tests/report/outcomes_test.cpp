// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/app.h"
#include "core/file.h"
#include "tests/temp_file.h"

namespace espalier {
namespace {

using Json = nlohmann::ordered_json;

std::string stdout_of(const std::vector<std::string>& words) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_app(words, out, err), 0) << err.str();
  return out.str();
}

/// The results of a document of that schema.
Json results_of(const std::string& text) {
  Json json = Json::parse(text);
  EXPECT_EQ(json["schema"], "espalier.report/2");
  return std::move(json["results"]);
}

TEST(Report, HasTheKeysOfTheSchemaInOrder) {
  const Json reports = results_of(stdout_of(
      {"sim", "--topology", "full:n=3", "--algorithm", "ring", "--size", "3MB", "--json", "-"}));
  ASSERT_EQ(reports.size(), 1u);
  std::vector<std::string> keys;
  for (const auto& [key, value] : reports[0].items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"kind",
                                            "topology",
                                            "collective",
                                            "algorithm",
                                            "profile",
                                            "protocol",
                                            "links_scope",
                                            "gpus",
                                            "ranks",
                                            "root",
                                            "in_place",
                                            "dtype",
                                            "op",
                                            "iters",
                                            "size_bytes",
                                            "chunk_bytes",
                                            "backend",
                                            "engine",
                                            "time_s",
                                            "launch",
                                            "back_to_back_s",
                                            "benchmark_s",
                                            "error",
                                            "nccl",
                                            "min_time_s",
                                            "max_time_s",
                                            "algbw_gbps",
                                            "busbw_gbps",
                                            "transfers",
                                            "verified",
                                            "order_consistent",
                                            "wrong",
                                            "bound",
                                            "links",
                                            "critical_path",
                                            "critical_path_steps",
                                            "wall_s"}));
}

TEST(Report, SimulationsAreTheSameByteForByte) {
  const std::vector<std::string> words = {"sim",  "--topology", "dgx1-v100", "--gpus",
                                          "0-5",  "--size",     "1KiB,1MiB", "--chunk",
                                          "auto", "--json",     "-"};
  const auto without_wall_time = [&] {
    Json reports = results_of(stdout_of(words));
    for (Json& report : reports) report.erase("wall_s");
    return reports.dump();
  };
  EXPECT_EQ(without_wall_time(), without_wall_time());
}

TEST(Report, ExecutionsSayWhatWasCounted) {
  const Json reports = results_of(stdout_of({"exec", "--ranks", "3", "--algorithm", "ring",
                                             "--size", "1000", "--iters", "2", "--json", "-"}));
  ASSERT_EQ(reports.size(), 2u) << "out of place and in place";
  for (const Json& report : reports) {
    EXPECT_EQ(report["backend"], "host");
    EXPECT_EQ(report["wrong"], 0);
    EXPECT_TRUE(report["topology"].is_null());
    EXPECT_TRUE(report["bound"].is_null());
    EXPECT_EQ(report["dtype"], "float");
    EXPECT_EQ(report["op"], "sum");
    EXPECT_EQ(report["iters"], 2);
    EXPECT_GT(report["min_time_s"], 0);
    EXPECT_LE(report["min_time_s"], report["time_s"]);
    EXPECT_LE(report["time_s"], report["max_time_s"]);
  }
  EXPECT_FALSE(reports[0]["in_place"]);
  EXPECT_TRUE(reports[1]["in_place"]);
}

TEST(Report, ExecutionsCarryTheBoundOfTheMachineNamed) {
  const Json reports = results_of(
      stdout_of({"exec", "--topology", "ring:n=3,gbps=10", "--profile", "ideal", "--algorithm",
                 "ring", "--size", "3000", "--iters", "1", "--json", "-"}));
  for (const Json& report : reports) {
    // Links of three parts carry 6 x 10 GB/s, and each byte takes 2 x (3 - 1) messages.
    EXPECT_EQ(report["bound"]["exact"], "15");
    EXPECT_NEAR(report["bound"]["fraction"].get<double>(), report["algbw_gbps"].get<double>() / 15,
                1e-8);
  }
}

TEST(Report, FilesAndTablesGoTogether) {
  const std::string file = temp_file("report_test.json");
  const std::string table =
      stdout_of({"sim", "--topology", "full:n=3", "--size", "3MB", "--json", file});
  EXPECT_NE(table.find("busbw"), std::string::npos);
  EXPECT_GT(results_of(read_file(file)).size(), 1u);
  std::remove(file.c_str());
}

TEST(Report, HasTheExplanationThatTablesPrint) {
  const std::vector<std::string> words = {"sim",       "--topology", "dgx-a100", "--algorithm",
                                          "nccl",      "ring",       "--size",   "64KiB",
                                          "--no-nccl", "--explain"};
  std::vector<std::string> json = words;
  json.insert(json.end(), {"--json", "-"});
  const Json reports = results_of(stdout_of(json));
  ASSERT_EQ(reports.size(), 2u);
  std::string text = "#\n";
  for (const Json& line : reports[0]["explain"]) text += "# " + line.get<std::string>() + "\n";
  EXPECT_NE(text.find("NCCL"), std::string::npos);
  EXPECT_NE(stdout_of(words).find(text), std::string::npos);
  EXPECT_FALSE(reports[1].contains("explain"));  // of a ring
}

TEST(Trace, LanesAreOneOpAtATime) {
  const Json trace =
      Json::parse(stdout_of({"sim", "--topology", "ring:n=4,gbps=10,latency_us=1", "--profile",
                             "ideal", "--algorithm", "ring", "--size", "40MB", "--trace", "-"}));
  std::map<std::pair<int, int>, double> lane_end_us;
  std::set<int> named;
  double end_us = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") {
      if (event["name"] == "process_name") named.insert(event["pid"].get<int>());
      continue;
    }
    ASSERT_EQ(event["ph"], "X");
    double& free_us = lane_end_us[{event["pid"], event["tid"]}];
    const double begin_us = event["ts"];
    EXPECT_GE(begin_us, free_us - 1e-6) << event["name"];
    free_us = begin_us + event["dur"].get<double>();
    end_us = std::max(end_us, free_us);
  }
  EXPECT_EQ(named, (std::set<int>{0, 1, 2, 3}));
  // 2 (n - 1) steps of 10 MB / 10 GB/s on every lane; the last way, 1 us, holds none.
  EXPECT_NEAR(end_us, 6 * 1000, 1e-3);
}

}  // namespace
}  // namespace espalier
