// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "cli/json.h"

namespace espalier {

namespace {

Json critical_path_json(const SimulatedPart& simulated) {
  Json steps = Json::array();
  for (const CriticalStep& step : simulated.critical_path) {
    steps.push_back({{"op", step.op},
                     {"start_s", rounded(step.start_s)},
                     {"end_s", rounded(step.end_s)},
                     {"what", step.what},
                     {"waited_for", step.waited_for}});
  }
  return steps;
}

/// A report without its lists.
Json figures_json(const Outcome& outcome) {
  const Query& query = outcome.query;
  const RunReport& report = outcome.report;
  const bool on_machine = !query.topology.empty();
  Json json;
  json["schema"] = "espalier.report/1";
  add_asked_by(outcome.asked_by, json);
  json["topology"] = on_machine ? Json(query.topology) : Json();
  json["collective"] = to_string(query.collective);
  json["algorithm"] = query.algorithm;
  if (!outcome.chosen.empty()) json["chosen"] = outcome.chosen;
  json["profile"] = on_machine ? Json(query.profile) : Json();
  json["links_scope"] = on_machine ? Json(to_string(query.links)) : Json();
  json["gpus"] = gpu_numbers(query, outcome.ranks);
  if (!query.relays.empty()) json["relays"] = query.relays;
  json["ranks"] = outcome.ranks;
  json["root"] = info(query.collective).rooted ? Json(query.root) : Json();
  json["in_place"] = query.in_place;
  // Times of an executing back end depend on these, and those of the simulator do not.
  const std::optional<ExecutedPart>& executed = report.executed;
  json["dtype"] = executed ? Json(to_string(query.run.type)) : Json();
  json["op"] = executed && info(query.collective).reduces ? Json(to_string(query.run.op)) : Json();
  json["iters"] = executed ? Json(query.run.iterations) : Json();
  json["size_bytes"] = report.message_bytes;
  json["chunk_bytes"] = outcome.chunk_bytes;
  if (!outcome.chunk_note.empty()) json["chunk_note"] = outcome.chunk_note;
  json["backend"] = outcome.backend;
  json["engine"] = report.simulated ? Json(report.simulated->engine) : Json();
  if (executed && !executed->notes.empty()) json["notes"] = executed->notes;
  json["time_s"] = rounded(report.time_s);
  json["min_time_s"] = executed ? rounded(executed->min_time_s) : Json();
  json["max_time_s"] = executed ? rounded(executed->max_time_s) : Json();
  json["algbw_gbps"] = rounded(report.algbw_gbps());
  json["busbw_gbps"] = rounded(outcome.busbw_gbps());
  json["transfers"] = report.transfers;
  json["verified"] = outcome.verified;
  json["order_consistent"] = outcome.order_consistent;
  json["wrong"] = executed && executed->wrong ? Json(*executed->wrong) : Json();
  return json;
}

Json report_json(const Outcome& outcome) {
  const RunReport& report = outcome.report;
  Json json = figures_json(outcome);
  json["bound"] = outcome.bound ? bound_json(*outcome.bound, outcome.fraction) : Json();
  const SimulatedPart simulated = report.simulated.value_or(SimulatedPart{});
  json["links"] = links_json(simulated);
  json["critical_path"] = critical_path_json(simulated);
  json["critical_path_steps"] = simulated.critical_steps;
  json["wall_s"] = rounded(report.wall_s);
  return json;
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return {};
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace

Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.10g}", value).c_str(), nullptr);
}

void add_asked_by(const AskedBy& asked_by, Json& json) {
  if (asked_by == AskedBy{}) return;
  json["scenario"] = asked_by.scenario;
  json["block"] = asked_by.block;
}

Json gpu_numbers(const Query& query, int ranks) {
  Json numbers = Json::array();
  if (query.topology.empty()) return numbers;
  for (int rank = 0; rank < ranks; ++rank) {
    numbers.push_back(query.gpus.empty() ? rank : query.gpus[rank]);
  }
  return numbers;
}

Json bound_json(const Bound& bound, double fraction) {
  return {{"algbw_gbps", rounded(bound.algbw_gbps)},
          {"exact", bound.exact},
          {"fraction", rounded(fraction)},
          {"kind", bound.kind},
          {"certificate", bound.certificate}};
}

Json links_json(const SimulatedPart& simulated) {
  Json links = Json::array();
  for (const LinkUse& link : simulated.links) {
    links.push_back({{"name", link.name},
                     {"bytes", rounded(link.bytes)},
                     {"busy_s", rounded(link.busy_s)},
                     {"utilization", rounded(link.utilization)}});
  }
  return links;
}

Json skipped_json(const Skipped& one) {
  Json json;
  json["schema"] = "espalier.skipped/1";
  add_asked_by(one.asked_by, json);
  json["topology"] = one.topology.empty() ? Json() : Json(one.topology);
  json["profile"] = one.topology.empty() ? Json() : Json(one.profile);
  json["links_scope"] = one.topology.empty() ? Json() : Json(to_string(one.links));
  json["gpus"] = one.gpus.empty() ? Json() : Json(one.gpus);
  if (!one.relays.empty()) json["relays"] = one.relays;
  json["collective"] = one.collective;
  json["algorithm"] = one.algorithm;
  if (!one.model.empty()) json["model"] = one.model;
  json["reason"] = one.reason;
  if (!one.instead.empty()) json["instead"] = one.instead;
  return json;
}

Json reports_array(const std::vector<Outcome>& outcomes) {
  Json all = Json::array();
  for (const Outcome& outcome : outcomes) all.push_back(report_json(outcome));
  return all;
}

std::string reports_json(const Answers& answers) {
  Json all = reports_array(answers.outcomes);
  for (const Skipped& one : answers.skipped) all.push_back(skipped_json(one));
  return dump_one_or_array(all);
}

std::string csv_text(const std::vector<std::string>& columns, const std::vector<Json>& rows) {
  std::string text = join(columns, ",") + "\r\n";
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& column : columns) {
      const auto value = row.find(column);
      cells.push_back(value == row.end() ? "" : csv_cell(*value));
    }
    text += join(cells, ",") + "\r\n";
  }
  return text;
}

const std::vector<std::string>& report_columns() {
  static const std::vector<std::string> columns = {
      "topology",   "gpus",        "ranks",    "profile",    "collective", "root",
      "in_place",   "algorithm",   "chosen",   "dtype",      "op",         "backend",
      "size_bytes", "chunk_bytes", "time_s",   "min_time_s", "max_time_s", "algbw_gbps",
      "busbw_gbps", "bound_gbps",  "fraction", "transfers",  "wrong"};
  return columns;
}

Json report_row(const Outcome& outcome) {
  Json row = figures_json(outcome);
  row["gpus"] = outcome.query.topology.empty() ? "" : format_ranges(row["gpus"]);
  row["relays"] = format_ranges(outcome.query.relays);
  row["bound_gbps"] = outcome.bound ? rounded(outcome.bound->algbw_gbps) : Json();
  row["fraction"] = outcome.bound ? rounded(outcome.fraction) : Json();
  return row;
}

const std::vector<std::string>& study_columns() {
  static const std::vector<std::string> columns = {"scenario", "block", "links_scope", "relays",
                                                   "skipped"};
  return columns;
}

Json skipped_row(const Skipped& one) {
  Json row = skipped_json(one);
  row["gpus"] = format_ranges(one.gpus);
  row["relays"] = format_ranges(one.relays);
  row["skipped"] = one.reason;
  return row;
}

}  // namespace espalier
