// SPDX-License-Identifier: Apache-2.0
// A table as `nccl-tests -J` writes it: src/util.cu of NVIDIA/nccl-tests, version 2 of its files.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "formats/json_text.h"
#include "formats/nccl_tests_parts.h"

namespace espalier {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFileVersion = 2;

/// It prints figures with six decimals, times in microseconds.
double figure(double value) { return std::round(value * 1e6) / 1e6; }

/// Its truth values are texts.
const char* truth(bool is_so) { return is_so ? "true" : "false"; }

Json half_of(const std::optional<MeasuredTime>& time) {
  if (!time) return nullptr;
  Json half;
  half["time"] = figure(time->time_s * 1e6);
  half["alg_bw"] = figure(time->algbw_gbps);
  half["bus_bw"] = figure(time->busbw_gbps);
  half["nwrong"] = time->wrong ? Json(*time->wrong) : Json(nullptr);
  return half;
}

Json result_of(const MeasuredRow& row, const MeasuredTable& table, const NcclTestsRun& run) {
  Json result;
  result["size"] = row.bytes;
  result["count"] = row.count;
  result["type"] = row.type;
  result["redop"] = row.redop.empty() ? "none" : row.redop;
  result["root"] = fmt::format("{:>6}", row.root.value_or(-1));
  result["out_of_place"] = half_of(row.out_of_place);
  result["in_place"] = half_of(row.in_place);
  result["actual_iterations"] = std::max(table.iterations, 0);
  result["experiment_name"] = run.experiment;
  return result;
}

/// Sizes grow by a factor or by so many bytes: "2(factor)", "1048576(bytes)".
void add_step(const std::string& step, Json& config) {
  const std::size_t end = std::min(step.find('('), step.size());
  const auto number = parse_whole(std::string_view(step).substr(0, end), 0, std::int64_t{1} << 50);
  if (number) config[step.ends_with("(factor)") ? "step_factor" : "step_bytes"] = *number;
}

Json config_of(const MeasuredTable& table, const NcclTestsRun& run) {
  Json config;
  config["nthreads"] = std::max(table.threads, 1);
  config["ngpus"] = std::max(table.gpus_per_thread, 1);
  config["minimum_bytes"] = std::max<std::int64_t>(table.min_bytes, 0);
  config["maximum_bytes"] = std::max<std::int64_t>(table.max_bytes, 0);
  add_step(table.step, config);
  config["warmup_iters"] = std::max(table.warmup, 0);
  config["iterations"] = std::max(table.iterations, 0);
  config["aggregated_iterations"] = std::max(table.aggregated, 1);
  config["validation"] = run.validates ? 1 : 0;
  config["graph"] = std::max(table.graph, 0);
  config["blocking_collectives"] = truth(false);
  config["per_iter_timing"] = truth(false);
  config["parallel_init"] = truth(false);
  Json devices = Json::array();
  for (const MeasuredRank& rank : table.listed) {
    Json device;
    device["rank"] = rank.rank;
    device["group"] = rank.group;
    device["pid"] = run.process;
    device["hostname"] = rank.host;
    device["device"] = rank.device;
    device["device_hex"] = rank.bus;
    device["device_info"] = rank.model;
    devices.push_back(device);
  }
  config["devices"] = devices;
  return config;
}

}  // namespace

std::string nccl_tests_json(const MeasuredTable& table, const NcclTestsRun& run) {
  CHECK(table.collective);
  Json json;
  json["version"] = kFileVersion;
  json["start_time"] = run.start_time;
  json["args"] =
      Json::array({table.test.empty() ? test_of_collective(*table.collective) : table.test});
  for (const std::string& word : run.arguments) json["args"].push_back(word);
  json["env"] = Json::array();
  json["nccl_version"] = 0;  // the times are not NCCL's
  json["config"] = config_of(table, run);
  json["results"] = Json::array();
  for (const MeasuredRow& row : table.rows) json["results"].push_back(result_of(row, table, run));
  const std::int64_t wrong = table.out_of_bounds.value_or(0);
  json["out_of_bounds"] = {{"count", wrong}, {"okay", truth(wrong == 0)}};
  json["average_bus_bandwidth"] = {{"bandwidth", figure(table.average_busbw_gbps.value_or(0))},
                                   {"okay", "unchecked"}};
  json["errors"] = Json::array();
  json["end_time"] = run.end_time;
  // Names may hold bytes that are not UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace espalier
