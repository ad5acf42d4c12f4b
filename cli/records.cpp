// SPDX-License-Identifier: Apache-2.0
#include "cli/records.h"

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "core/file.h"
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
  static void of(auto& visit, Is<SimulatedPart> auto& simulated) {
    visit("engine", simulated.engine);
    visit("end", simulated.end);
    visit("work", simulated.work);
    visit("links", simulated.links);
    visit("critical_path", simulated.critical_path);
    visit("critical_steps", simulated.critical_steps);
  }
  static void of(auto& visit, Is<ExecutedPart> auto& executed) {
    visit("min_time_s", executed.min_time_s);
    visit("max_time_s", executed.max_time_s);
    visit("median_time_s", executed.median_time_s);
    visit("wrong", executed.wrong);
    visit("damage", executed.damage);
    visit("notes", executed.notes);
  }
  static void of(auto& visit, Is<RunReport> auto& report) {
    visit("time_s", report.time_s);
    visit("message_bytes", report.message_bytes);
    visit("transfers", report.transfers);
    visit("wall_s", report.wall_s);
    visit("simulated", report.simulated);
    visit("executed", report.executed);
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
  return std::isinf(value) ? Json(value > 0 ? "infinity" : "-infinity") : Json(value);
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

constexpr const char* kOutcome = "outcome";
constexpr const char* kErrorKind = "error";
constexpr const char* kDiagnostics = "diagnostics";

template <class Answer>
void read_answer(const Json& record, Answer& outcome) {
  if (record.contains(kErrorKind)) {
    ErrorKind kind = ErrorKind::runtime;
    std::vector<Diagnostic> diagnostics;
    read(record.at(kErrorKind), kind);
    read(record.at(kDiagnostics), diagnostics);
    throw Error(kind, std::move(diagnostics));
  }
  read(record.at(kOutcome), outcome);
}

/// 64-bit FNV-1a, in hexadecimal digits.
std::string fingerprint(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char byte : text) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace

Json record_of(const Outcome& outcome) { return {{kOutcome, json_of(outcome)}}; }

Json record_of(const TrainingOutcome& outcome) { return {{kOutcome, json_of(outcome)}}; }

Json record_of(const Error& error) {
  return {{kErrorKind, json_of(error.kind())}, {kDiagnostics, json_of(error.diagnostics())}};
}

void read_record(const Json& record, Outcome& outcome) { read_answer(record, outcome); }

void read_record(const Json& record, TrainingOutcome& outcome) { read_answer(record, outcome); }

std::string one_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Another build may answer otherwise.
QuestionKeys::QuestionKeys(Study& study)
    : study_(study), program_(fingerprint(read_file("/proc/self/exe"))) {}

Json QuestionKeys::key(const Json& question, const Query& query,
                       const std::vector<ExchangeCollective>& collectives) {
  std::string& machine = machines_[query.topology];
  if (machine.empty()) {
    Topology printed = *study_.topology(query);
    printed.hosts = 1;  // as one: every node and link of every host by its name
    machine = fingerprint(print_topology(printed));
  }
  Json key = {{"question", question}, {"program", program_}, {"machine", machine}};
  for (const ExchangeCollective& one : collectives) {
    Query stage = query;
    stage.collective = one.collective;
    stage.algorithm = one.algorithm;
    try {
      if (const TuningTable* table = study_.tuning_table(stage)) {
        key["tables"].push_back(fingerprint(print_tuning(*table)));
      }
    } catch (const Error& error) {
      key["tables"].push_back(error.what());
    }
  }
  return key;
}

Json QuestionKeys::of(const Query& query) {
  return key(json_of(query), query, {{query.collective, query.algorithm}});
}

Json QuestionKeys::of(const TrainingQuery& query) {
  std::string& model = models_[query.model.get()];
  if (model.empty()) model = fingerprint(one_line(json_of(*query.model)));
  Json made = key(json_of(query), query.exchange, collectives_of(query.exchange.algorithm));
  made["model"] = model;
  return made;
}

}  // namespace espalier
