// SPDX-License-Identifier: Apache-2.0
#include "cli/records.h"

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <type_traits>

#include "core/check.h"
#include "core/file.h"
#include "core/words.h"
#include "scenarios/chooser.h"
#include "topologies/load.h"

namespace espalier {

namespace {

template <class Value, class Record>
concept Is = std::same_as<std::remove_const_t<Value>, Record>;

/// The fields of records, each listed once for writing and reading: `visit(key, field)`.
struct Fields {
  static void of(auto& visit, Is<Location> auto& where) {
    visit("file", where.file);
    visit("line", where.line);
    visit("column", where.column);
  }
  static void of(auto& visit, Is<Diagnostic> auto& problem) {
    visit("rule", problem.rule);
    visit("message", problem.message);
    visit("suggestion", problem.suggestion);
    visit("where", problem.where);
  }
  static void of(auto& visit, Is<Bound> auto& bound) {
    visit("algbw_gbps", bound.algbw_gbps);
    visit("exact", bound.exact);
    visit("kind", bound.kind);
    visit("certificate", bound.certificate);
  }
  static void of(auto& visit, Is<LinkUse> auto& link) {
    visit("name", link.name);
    visit("bytes", link.bytes);
    visit("busy_s", link.busy_s);
    visit("utilization", link.utilization);
    visit("is_link", link.is_link);
  }
  static void of(auto& visit, Is<CriticalStep> auto& step) {
    visit("op", step.op);
    visit("start_s", step.start_s);
    visit("end_s", step.end_s);
    visit("what", step.what);
    visit("waited_for", step.waited_for);
  }
  static void of(auto& visit, Is<RunReport> auto& report) {
    visit("time_s", report.time_s);
    visit("min_time_s", report.min_time_s);
    visit("max_time_s", report.max_time_s);
    visit("median_time_s", report.median_time_s);
    visit("message_bytes", report.message_bytes);
    visit("transfers", report.transfers);
    visit("wrong", report.wrong);
    visit("damage", report.damage);
    visit("notes", report.notes);
    visit("engine", report.engine);
    visit("end", report.end);
    visit("work", report.work);
    visit("links", report.links);
    visit("critical_path", report.critical_path);
    visit("critical_steps", report.critical_steps);
    visit("wall_s", report.wall_s);
  }
  static void of(auto& visit, Is<Outcome> auto& outcome) {
    visit("backend", outcome.backend);
    visit("skipped", outcome.skipped);
    visit("instead", outcome.instead);
    visit("chosen", outcome.chosen);
    visit("ranks", outcome.ranks);
    visit("chunk_bytes", outcome.chunk_bytes);
    visit("chunk_note", outcome.chunk_note);
    visit("verified", outcome.verified);
    visit("order_consistent", outcome.order_consistent);
    visit("problems", outcome.problems);
    visit("bound_links", outcome.bound_links);
    visit("bound_helpers", outcome.bound_helpers);
    visit("bound_relays", outcome.bound_relays);
    visit("bound", outcome.bound);
    visit("fraction", outcome.fraction);
    visit("report", outcome.report);
  }
  static void of(auto& visit, Is<Bucket> auto& bucket) {
    visit("first", bucket.first);
    visit("last", bucket.last);
    visit("elements", bucket.elements);
  }
  static void of(auto& visit, Is<BucketOutcome> auto& outcome) {
    visit("bucket", outcome.bucket);
    visit("bytes", outcome.bytes);
    visit("algorithm", outcome.algorithm);
    visit("ready_s", outcome.ready_s);
    visit("begin_s", outcome.begin_s);
    visit("end_s", outcome.end_s);
  }
  static void of(auto& visit, Is<TrainingOutcome> auto& outcome) {
    visit("skipped", outcome.skipped);
    visit("instead", outcome.instead);
    visit("problems", outcome.problems);
    visit("ranks", outcome.ranks);
    visit("order_consistent", outcome.order_consistent);
    visit("compute_s", outcome.compute_s);
    visit("communication_s", outcome.communication_s);
    visit("report", outcome.report);
    visit("buckets", outcome.buckets);
  }
  // Questions, which are only written.
  static void of(auto& visit, Is<RunOptions> auto& run) {
    visit("type", run.type);
    visit("op", run.op);
    visit("engine", run.engine);
    visit("is_call", run.is_call);
  }
  static void of(auto& visit, Is<Query> auto& query) {
    visit("topology", query.topology);
    visit("ranks", query.ranks);
    visit("gpus", query.gpus);
    visit("relays", query.relays);
    visit("profile", query.profile);
    visit("links", query.links);
    visit("collective", query.collective);
    visit("root", query.root);
    visit("in_place", query.in_place);
    visit("algorithm", query.algorithm);
    visit("size_bytes", query.size_bytes);
    visit("chunk_bytes", query.chunk_bytes);
    visit("judge", query.judge);
    visit("run", query.run);
  }
  static void of(auto& visit, Is<TrainingQuery> auto& query) {
    visit("exchange", query.exchange);
    visit("type", query.type);
    visit("batch", query.batch);
    visit("step_s", query.step_s);
    visit("fusion_bytes", query.fusion_bytes);
    visit("overlap", query.overlap);
  }
  static void of(auto& visit, Is<Tensor> auto& tensor) {
    visit("name", tensor.name);
    visit("elements", tensor.elements);
    visit("uses", tensor.uses);
  }
  static void of(auto& visit, Is<Model> auto& model) {
    visit("name", model.name);
    visit("backward_to_forward", model.backward_to_forward);
    visit("tensors", model.tensors);
  }
};

template <class Value>
concept IsRecord = requires(Value& value, void (*visit)(...)) {
  Fields::of(visit, value);
};
template <class Value>
concept IsOptional = requires(Value& value) {
  value.reset();
};
template <class Value>
concept IsVector = std::same_as<Value, std::vector<typename Value::value_type>>;

Json json_of(double value) {
  // JSON has no infinity, which bounds may have.
  return std::isfinite(value) ? Json(value) : Json(value > 0 ? "infinity" : "-infinity");
}
template <class Value>
Json json_of(const Value& value) {
  if constexpr (IsRecord<const Value>) {
    Json json = Json::object();
    const auto add = [&](const char* key, const auto& field) { json[key] = json_of(field); };
    Fields::of(add, value);
    return json;
  } else if constexpr (IsOptional<Value>) {
    return value ? json_of(*value) : Json();
  } else if constexpr (IsVector<Value>) {
    Json json = Json::array();
    for (const auto& one : value) json.push_back(json_of(one));
    return json;
  } else if constexpr (std::is_enum_v<Value>) {
    return static_cast<int>(value);
  } else {
    return value;
  }
}

void read(const Json& json, double& value) {
  value = json.is_string() ? (json == "infinity" ? HUGE_VAL : -HUGE_VAL) : json.get<double>();
}
template <class Value>
void read(const Json& json, Value& value) {
  if constexpr (IsRecord<Value>) {
    const auto take = [&](const char* key, auto& field) { read(json.at(key), field); };
    Fields::of(take, value);
  } else if constexpr (IsOptional<Value>) {
    value.reset();
    if (!json.is_null()) read(json, value.emplace());
  } else if constexpr (IsVector<Value>) {
    value.clear();
    for (const Json& one : json) read(one, value.emplace_back());
  } else if constexpr (std::is_enum_v<Value>) {
    value = static_cast<Value>(json.get<int>());
  } else {
    json.get_to(value);
  }
}

constexpr const char* kOutcomes = "outcomes";
constexpr const char* kErrorKind = "error";
constexpr const char* kDiagnostics = "diagnostics";

template <class Answer>
std::vector<Answer> read_outcomes(const Json& record, std::size_t count) {
  if (is_error_record(record)) {
    ErrorKind kind = ErrorKind::runtime;
    std::vector<Diagnostic> diagnostics;
    read(record.at(kErrorKind), kind);
    read(record.at(kDiagnostics), diagnostics);
    throw Error(kind, std::move(diagnostics));
  }
  std::vector<Answer> outcomes;
  read(record.at(kOutcomes), outcomes);
  CHECK(outcomes.size() == count);
  return outcomes;
}

/// 64-bit FNV-1a, in hexadecimal digits.
std::string fingerprint(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char byte : text) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }
  return fmt::format("{:016x}", hash);
}

/// Another build may answer otherwise.
const std::string& this_program() {
  static const std::string program = [] {
    std::error_code unknown;
    const auto changed = std::filesystem::last_write_time("/proc/self/exe", unknown);
    return unknown ? "" : fmt::format("{}", changed.time_since_epoch().count());
  }();
  return program;
}

/// What files say that the query only names. Training may have an algorithm for each stage.
Json sources_of(const Query& query, const std::vector<std::string>& algorithms) {
  Topology machine = load_topology(query.topology);
  machine.hosts = 1;  // printed as one: every node and link of every host by its name
  Json sources = {{"machine", fingerprint(print_topology(machine))}};
  for (const std::string& algorithm : algorithms) {
    if (const auto file = tuning_file(algorithm)) {
      sources["tables"].push_back(fingerprint(read_file(*file)));
    }
  }
  return sources;
}

}  // namespace

Json record_of(const std::vector<Outcome>& outcomes) { return {{kOutcomes, json_of(outcomes)}}; }

Json record_of(const std::vector<TrainingOutcome>& outcomes) {
  return {{kOutcomes, json_of(outcomes)}};
}

Json record_of(const Error& error) {
  return {{kErrorKind, json_of(error.kind())}, {kDiagnostics, json_of(error.diagnostics())}};
}

bool is_error_record(const Json& record) { return record.contains(kErrorKind); }

std::vector<Outcome> outcomes_of(const Json& record, const std::vector<Query>& queries) {
  auto outcomes = read_outcomes<Outcome>(record, queries.size());
  for (std::size_t i = 0; i < outcomes.size(); ++i) outcomes[i].query = queries[i];
  return outcomes;
}

std::vector<TrainingOutcome> outcomes_of(const Json& record,
                                         const std::vector<TrainingQuery>& queries) {
  auto outcomes = read_outcomes<TrainingOutcome>(record, queries.size());
  for (std::size_t i = 0; i < outcomes.size(); ++i) outcomes[i].query = queries[i];
  return outcomes;
}

Json key_of(const std::vector<Query>& queries) {
  Json sources = Json::array();
  for (const Query& query : queries) sources.push_back(sources_of(query, {query.algorithm}));
  return {{"program", this_program()}, {"queries", json_of(queries)}, {"sources", sources}};
}

Json key_of(const std::vector<TrainingQuery>& queries) {
  Json sources = Json::array();
  for (const TrainingQuery& query : queries) {
    Json& one =
        sources.emplace_back(sources_of(query.exchange, split(query.exchange.algorithm, '+')));
    one["model"] = fingerprint(json_of(*query.model).dump());
  }
  return {{"program", this_program()}, {"queries", json_of(queries)}, {"sources", sources}};
}

}  // namespace espalier
