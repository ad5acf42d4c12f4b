// SPDX-License-Identifier: Apache-2.0
// Measured times as JSON: what `nccl-tests -J` writes (its src/util.cu), the records of rccl-tests,
// and our own reports.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "core/error.h"
#include "core/words.h"
#include "formats/json_text.h"
#include "formats/nccl_tests_parts.h"

namespace espalier {
namespace {

using Json = nlohmann::json;

constexpr double kLargestFigure = 1e15;
constexpr std::size_t kMaxProblems = 100;

/// Where an object is: "result 3", as messages about its members say.
std::string describe(const std::vector<JsonStep>& path) {
  for (auto step = path.rbegin(); step != path.rend(); ++step) {
    if (step->index >= 0) return fmt::format("{} {}", step->key, step->index);
  }
  return {};
}

class Reader {
 public:
  explicit Reader(const std::string& file) { read_.file = file; }

  MeasuredTables read(const Json& json) {
    if (json.is_object() && json.contains("results") && !json.contains("schema")) {
      read_nccl_tests(json);
    } else if (json.is_object()) {
      read_record(json, "the record");
    } else if (json.is_array()) {
      for (std::size_t i = 0; i < json.size(); ++i) {
        if (json[i].is_object()) {
          read_record(json[i], fmt::format("record {}", i));
        } else {
          problem(fmt::format("record {} is no object", i));
        }
      }
    } else {
      problem("expected an object, or a list of them");
    }
    problems_.throw_if_any();
    std::erase_if(read_.tables, [](const MeasuredTable& table) { return table.rows.empty(); });
    if (read_.tables.empty()) problem("there are no results in it");
    problems_.throw_if_any();
    for (std::size_t i = 0; i < read_.tables.size(); ++i) check_table(read_.tables[i], unit_s_);
    return std::move(read_);
  }

 private:
  void problem(std::string message) {
    if (problems_.all().size() < kMaxProblems)
      problems_.add({read_.file, 0, 0}, std::move(message));
  }

  double number(const Json& object, const char* key, const std::string& of, double low = 0,
                double high = kLargestFigure) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number()) {
      problem(fmt::format("{}: {} {}", of, quote(key),
                          found == object.end() ? "is missing" : "must be a number"));
      return low;
    }
    const double value = found->get<double>();
    if (value >= low && value <= high) return value;
    problem(fmt::format("{}: {} is {}, but must be within {} and {}", of, quote(key), found->dump(),
                        low, high));
    return low;
  }
  std::int64_t whole(const Json& object, const char* key, const std::string& of,
                     std::int64_t high) {
    const double value = number(object, key, of, 0, static_cast<double>(high));
    if (value != static_cast<double>(static_cast<std::int64_t>(value))) {
      problem(fmt::format("{}: {} must be a whole number", of, quote(key)));
    }
    return static_cast<std::int64_t>(value);
  }
  std::int64_t size(const Json& object, const char* key, const std::string& of) {
    return whole(object, key, of, std::int64_t{1} << 50);
  }
  static std::string text(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
  }
  static int launch(const Json& config, const char* key) {
    const auto found = config.find(key);
    if (found == config.end() || !found->is_number_integer()) return -1;
    const auto value = found->get<std::int64_t>();
    return value >= 0 && value <= std::numeric_limits<int>::max() ? static_cast<int>(value) : -1;
  }

  void read_nccl_tests(const Json& json) {
    MeasuredTable table;
    unit_s_ = 1e-6;
    const auto arguments = json.find("args");
    if (arguments != json.end() && arguments->is_array() && !arguments->empty() &&
        arguments->front().is_string()) {
      const auto path = arguments->front().get<std::string>();
      table.test = path.substr(path.find_last_of('/') + 1);
      table.collective = collective_of_test(table.test);
    }
    if (const int version = launch(json, "nccl_version"); version > 0) {
      table.library = library_of_number(version);
    }
    if (json.contains("config") && json["config"].is_object()) read_config(json["config"], table);
    const Json& results = json["results"];
    if (!results.is_array()) problem("'results' must be a list");
    for (std::size_t i = 0; results.is_array() && i < results.size(); ++i) {
      read_result(results[i], fmt::format("result {}", i), table);
    }
    if (json.contains("average_bus_bandwidth") && json["average_bus_bandwidth"].is_object()) {
      table.average_busbw_gbps =
          number(json["average_bus_bandwidth"], "bandwidth", "'average_bus_bandwidth'");
    }
    if (json.contains("out_of_bounds") && json["out_of_bounds"].is_object()) {
      table.out_of_bounds = size(json["out_of_bounds"], "count", "'out_of_bounds'");
    }
    read_.tables.push_back(std::move(table));
  }

  /// The device list has the first GPU of each process only.
  void read_config(const Json& config, MeasuredTable& table) {
    table.threads = launch(config, "nthreads");
    table.gpus_per_thread = launch(config, "ngpus");
    table.warmup = launch(config, "warmup_iters");
    table.iterations = launch(config, "iterations");
    table.aggregated = launch(config, "aggregated_iterations");
    table.graph = launch(config, "graph");
    if (config.contains("minimum_bytes")) {
      table.min_bytes = size(config, "minimum_bytes", "'config'");
      table.max_bytes = size(config, "maximum_bytes", "'config'");
      for (const auto& [key, unit] :
           {std::pair("step_factor", "factor"), {"step_bytes", "bytes"}}) {
        if (!config.contains(key)) continue;
        table.step = fmt::format("{}({})", size(config, key, "'config'"), unit);
      }
    }
    const auto devices = config.find("devices");
    if (devices == config.end() || !devices->is_array()) return;
    std::int64_t processes = 0;
    for (const Json& one : *devices) {
      if (!one.is_object()) continue;
      MeasuredRank rank;
      rank.rank = std::max(0, launch(one, "rank"));
      rank.group = std::max(0, launch(one, "group"));
      rank.host = text(one, "hostname");
      rank.device = std::max(0, launch(one, "device"));
      rank.bus = text(one, "device_hex");
      rank.model = text(one, "device_info");
      if (table.listed.empty() || rank.group == table.listed.front().group) ++processes;
      table.listed.push_back(std::move(rank));
    }
    const std::int64_t per_process =
        std::int64_t{std::max(1, table.threads)} * std::max(1, table.gpus_per_thread);
    if (per_process <= 100'000 && processes * per_process <= 1'000'000) {
      table.ranks = static_cast<int>(processes * per_process);
    }
  }

  void read_result(const Json& result, const std::string& of, MeasuredTable& table) {
    if (!result.is_object()) return problem(of + " is no object");
    MeasuredRow row;
    row.bytes = size(result, "size", of);
    row.count = size(result, "count", of);
    row.type = text(result, "type");
    row.redop = text(result, "redop");
    // A number printed into a text: "    -1".
    const std::string written = text(result, "root");
    if (const auto root = parse_whole(trim(written), -1, 1'000'000)) {
      row.root = static_cast<int>(*root);
    }
    row.out_of_place = read_half(result, "out_of_place", of);
    row.in_place = read_half(result, "in_place", of);
    table.rows.push_back(std::move(row));
  }

  std::optional<MeasuredTime> read_half(const Json& result, const char* key,
                                        const std::string& of) {
    const auto half = result.find(key);
    if (half == result.end() || half->is_null()) return std::nullopt;
    const std::string name = fmt::format("{}, {}", of, quote(key));
    if (!half->is_object()) {
      problem(name + " must be an object");
      return std::nullopt;
    }
    MeasuredTime time;
    time.time_s = number(*half, half->contains("cpu_time") ? "cpu_time" : "time", name);
    time.algbw_gbps = number(*half, "alg_bw", name);
    time.busbw_gbps = number(*half, "bus_bw", name);
    // Six decimals.
    time.time_rounding_s = time.algbw_rounding_gbps = time.busbw_rounding_gbps = 0.5e-6;
    if (half->contains("nwrong") && !(*half)["nwrong"].is_null()) {
      time.wrong = number(*half, "nwrong", name);
    }
    return time;
  }

  void read_record(const Json& record, const std::string& of) {
    const std::string schema = text(record, "schema");
    if (schema == "espalier.report/1") {
      read_report(record, of);
    } else if (schema == "espalier.report/2" || schema == "espalier.compare/2") {
      read_own_results(record, "results", of);
    } else if (schema == "espalier.compare/1") {
      read_own_results(record, "rows", of);
    } else if (record.contains("busBw")) {
      read_rccl(record, of);
    } else if (schema.empty()) {
      problem(of + " is neither a result of rccl-tests nor a report of ours");
    }
  }

  /// The reports and comparisons in a list of ours, which may also hold what was skipped.
  void read_own_results(const Json& record, const char* key, const std::string& of) {
    const auto rows = record.find(key);
    if (rows == record.end() || !rows->is_array()) {
      return problem(fmt::format("{}: {} must be a list", of, quote(key)));
    }
    for (std::size_t i = 0; i < rows->size(); ++i) {
      const Json& row = (*rows)[i];
      if (!row.is_object()) {
        problem(fmt::format("row {} is no object", i));
        continue;
      }
      const std::string kind = text(row, "kind");
      if (kind.empty() || kind == "report" || kind == "comparison") {
        read_report(row, fmt::format("row {}", i));
      }
    }
  }

  /// The row of the size, made where there is none: one record is one half of it.
  MeasuredRow& row_for(const std::string& test, const std::string& key, int ranks,
                       std::int64_t bytes, bool in_place) {
    const auto table_key = std::make_tuple(test, key, ranks);
    auto known = tables_.find(table_key);
    if (known == tables_.end()) {
      known = tables_.emplace(table_key, read_.tables.size()).first;
      MeasuredTable table;
      table.test = test;
      table.ranks = ranks;
      read_.tables.push_back(std::move(table));
    }
    at_ = known->second;
    MeasuredTable& table = read_.tables[at_];
    const bool joins = !table.rows.empty() && table.rows.back().bytes == bytes &&
                       !(in_place ? table.rows.back().in_place : table.rows.back().out_of_place);
    if (!joins) {
      table.rows.emplace_back();
      table.rows.back().bytes = bytes;
    }
    return table.rows.back();
  }

  void read_rccl(const Json& record, const std::string& of) {
    unit_s_ = 1e-6;
    const bool in_place = number(record, "inPlace", of, 0, 1) == 1;
    const auto ranks = static_cast<int>(whole(record, "ranks", of, 1'000'000));
    const std::string type = text(record, "type"), redop = text(record, "redop");
    MeasuredRow& row = row_for(text(record, "name"), type + " " + redop, ranks,
                               size(record, "size", of), in_place);
    read_.tables[at_].collective = collective_of_test(text(record, "name"));
    row.type = type;
    row.redop = redop;
    MeasuredTime time;
    time.time_s = number(record, "time", of);
    time.algbw_gbps = number(record, "algBw", of);
    time.busbw_gbps = number(record, "busBw", of);
    time.time_rounding_s = time.algbw_rounding_gbps = time.busbw_rounding_gbps = 0.5e-6;
    if (const auto wrong = parse_figure(text(record, "wrong"))) time.wrong = wrong->value;
    (in_place ? row.in_place : row.out_of_place) = time;
  }

  /// A report of ours, or a row of a comparison, whose measured time counts.
  void read_report(const Json& record, const std::string& of) {
    unit_s_ = 1;
    const auto collective = parse_collective(text(record, "collective"));
    if (!collective) return problem(of + ": 'collective' is none that is known");
    const bool in_place = record.contains("in_place") && record["in_place"] == true;
    const auto ranks = static_cast<int>(whole(record, "ranks", of, 1'000'000));
    std::string test = text(record, "algorithm");
    const std::string machine = text(record, "topology"), backend = text(record, "backend");
    if (!machine.empty()) test += " on " + machine;
    if (!backend.empty()) test += " (" + backend + ")";
    const std::int64_t bytes = size(record, "size_bytes", of);
    MeasuredRow& row = row_for(test,
                               fmt::format("{} {} {}", to_string(*collective),
                                           text(record, "profile"), text(record, "dtype")),
                               ranks, bytes, in_place);
    read_.tables[at_].collective = collective;
    read_.tables[at_].tests = "espalier";
    row.type = text(record, "dtype");
    row.redop = text(record, "op");
    MeasuredTime time;
    time.time_s = number(record, record.contains("measured_s") ? "measured_s" : "time_s", of);
    if (record.contains("algbw_gbps")) {
      time.algbw_gbps = number(record, "algbw_gbps", of);
      time.busbw_gbps = number(record, "busbw_gbps", of);
    } else if (time.time_s > 0) {
      time.algbw_gbps = static_cast<double>(bytes) / time.time_s / 1e9;
      time.busbw_gbps = busbw_factor(*collective, std::max(1, ranks)) * time.algbw_gbps;
    }
    if (record.contains("wrong") && record["wrong"].is_number()) {
      time.wrong = number(record, "wrong", of);
    }
    (in_place ? row.in_place : row.out_of_place) = time;
  }

  MeasuredTables read_;
  double unit_s_ = 1e-6;
  std::size_t at_ = 0;  ///< the table of the record at hand
  std::map<std::tuple<std::string, std::string, int>, std::size_t> tables_;
  DiagnosticList problems_;
};

}  // namespace

MeasuredTables read_json_tables(std::string_view text, const std::string& file) {
  return Reader(file).read(parse_json(text, file, describe));
}

}  // namespace espalier
