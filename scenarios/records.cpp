// SPDX-License-Identifier: Apache-2.0
#include "scenarios/records.h"

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "algorithms/program_file.h"
#include "core/file.h"
#include "ir/text.h"
#include "scenarios/chooser.h"
#include "topologies/load.h"

namespace espalier {

namespace {

template <class Value, class Record>
concept Is = std::same_as<std::remove_const_t<Value>, Record>;

// The members of what is recorded, in their order. A structured binding names every member of its
// type, so none can be added and forgotten here: that does not compile. What is left out of the
// tuple says why.

auto members(Is<Location> auto& where) {
  auto& [file, line, column] = where;
  return std::tie(file, line, column);
}
auto members(Is<Diagnostic> auto& problem) {
  auto& [rule, message, suggestion, where] = problem;
  return std::tie(rule, message, suggestion, where);
}
auto members(Is<Bound> auto& bound) {
  auto& [algbw_gbps, exact, kind, certificate] = bound;
  return std::tie(algbw_gbps, exact, kind, certificate);
}
auto members(Is<LinkUse> auto& link) {
  auto& [name, bytes, busy_s, utilization, is_link, alike] = link;
  return std::tie(name, bytes, busy_s, utilization, is_link, alike);
}
auto members(Is<CriticalStep> auto& step) {
  auto& [op, start_s, end_s, what, waited_for] = step;
  return std::tie(op, start_s, end_s, what, waited_for);
}
auto members(Is<TimeBound> auto& bound) {
  auto& [call_s, wire, protocol, ends_s, way_s, certificate] = bound;
  return std::tie(call_s, wire, protocol, ends_s, way_s, certificate);
}
// Rounds that come again belong to timelines.
auto members(Is<SimulatedPart> auto& simulated) {
  auto& [engine, end, work, stuck, back_to_back_s, together_s, alike_lanes, blocks, busiest_s,
         busiest_link_s, links, critical_path, critical_steps, repeated] = simulated;
  return std::tie(engine, end, work, stuck, back_to_back_s, together_s, alike_lanes, blocks,
                  busiest_s, busiest_link_s, links, critical_path, critical_steps);
}
// No scenario is run by several processes, each of which has a time of its own; `interval_s` is
// used while probing only.
auto members(Is<ExecutedPart> auto& executed) {
  auto& [min_time_s, max_time_s, median_time_s, interval_s, rank_times_s, wrong, damage, notes] =
      executed;
  return std::tie(min_time_s, max_time_s, median_time_s, wrong, damage, notes);
}
// Timelines are as long as programs; who wants one asks again.
auto members(Is<RunReport> auto& report) {
  auto& [time_s, message_bytes, transfers, timeline, wall_s, simulated, executed] = report;
  return std::tie(time_s, message_bytes, transfers, wall_s, simulated, executed);
}
// Who reads a record knows the question, and who asked it; programs are as long as timelines, and
// explanations are not an answer's own.
auto members(Is<Outcome> auto& outcome) {
  auto& [query, asked_by, backend, skipped, instead, chosen, profile, protocol, ranks, chunk_bytes,
         chunk_note, program_note, verified, order_consistent, problems, bound_links, bound_helpers,
         bound_relays, bound, time_bound, fraction, budget, nccl_left_out, report, library_version,
         benchmark_s, error, nccl, explanation, program] = outcome;
  return std::tie(backend, skipped, instead, chosen, profile, protocol, ranks, chunk_bytes,
                  chunk_note, program_note, verified, order_consistent, problems, bound_links,
                  bound_helpers, bound_relays, bound, time_bound, fraction, budget, nccl_left_out,
                  report, library_version, benchmark_s, error, nccl);
}
auto members(Is<ExpectedError> auto& error) {
  auto& [relative, from, is_estimate] = error;
  return std::tie(relative, from, is_estimate);
}
auto members(Is<GrantedTime> auto& budget) {
  auto& [seconds, ran_out] = budget;
  return std::tie(seconds, ran_out);
}
auto members(Is<Baseline> auto& baseline) {
  auto& [time_s, algorithm, version, relative_error, library, runtime_gain, benchmark_s] = baseline;
  return std::tie(time_s, algorithm, version, relative_error, library, runtime_gain, benchmark_s);
}
auto members(Is<Bucket> auto& bucket) {
  auto& [first, last, elements] = bucket;
  return std::tie(first, last, elements);
}
auto members(Is<BucketOutcome> auto& outcome) {
  auto& [bucket, bytes, algorithm, ready_s, begin_s, end_s] = outcome;
  return std::tie(bucket, bytes, algorithm, ready_s, begin_s, end_s);
}
// As of an Outcome; the iteration is a program.
auto members(Is<TrainingOutcome> auto& outcome) {
  auto& [query, asked_by, skipped, instead, problems, ranks, order_consistent, compute_s,
         communication_s, notes, report, iteration, buckets, budget] = outcome;
  return std::tie(skipped, instead, problems, ranks, order_consistent, compute_s, communication_s,
                  notes, report, buckets, budget);
}

auto members(Is<TreeEdge> auto& edge) {
  auto& [parent, child, path] = edge;
  return std::tie(parent, child, path);
}
auto members(Is<PlannedTree> auto& tree) {
  auto& [root, weight, edges, partner] = tree;
  return std::tie(root, weight, edges, partner);
}
auto members(Is<Forest> auto& forest) {
  auto& [collective, units, trees, algbw_gbps, exact_algbw, unlimited_gbps, note] = forest;
  return std::tie(collective, units, trees, algbw_gbps, exact_algbw, unlimited_gbps, note);
}
// Who reads a record knows the question; the machine, loads and program follow from that and the
// forest.
auto members(Is<Planned> auto& planned) {
  auto& [query, machine, forest, loads, bound_links, bound, bound_in_switches, fraction, budget,
         program] = planned;
  return std::tie(forest, bound_links, bound, bound_in_switches, fraction, budget);
}

auto members(Is<TuningRow> auto& row) {
  auto& [up_to_bytes, algorithm, chunk_bytes, time_s] = row;
  return std::tie(up_to_bytes, algorithm, chunk_bytes, time_s);
}
auto members(Is<TuningTable> auto& table) {
  auto& [machine, gpus, relays, ranks, collective, root, profile, links, in_place, rows] = table;
  return std::tie(machine, gpus, relays, ranks, collective, root, profile, links, in_place, rows);
}

auto members(Is<ChunkChoice> auto& choice) {
  auto& [chunk_bytes, note, time_s, algbw_gbps] = choice;
  return std::tie(chunk_bytes, note, time_s, algbw_gbps);
}
auto members(Is<Prediction> auto& prediction) {
  auto& [skipped, algorithm, runtime, best, is_cut_short, note, is_bounded] = prediction;
  return std::tie(skipped, algorithm, runtime, best, is_cut_short, note, is_bounded);
}

// Questions.

// The size is the query's, and the use of blocks the algorithm's; the rest says how programs are
// executed.
auto members(Is<RunOptions> auto& run) {
  auto& [size_bytes, type, op, iterations, warmup, check, timeline, only_times, details, is_call,
         blocks, engine, starts_s, start_together, limits, timeout_s, found, more_rounds] = run;
  return std::tie(type, op, is_call, start_together, engine);
}
auto members(Is<Query> auto& query) {
  auto& [topology, ranks, gpus, relays, profile, links, collective, root, in_place, algorithm,
         size_bytes, chunk_bytes, judge, merge, may_fold, all_rounds, only_times, launch,
         library_version, timed_calls, against_nccl, run] = query;
  return std::tie(topology, ranks, gpus, relays, profile, links, collective, root, in_place,
                  algorithm, size_bytes, chunk_bytes, judge, merge, may_fold, all_rounds,
                  only_times, launch, library_version, timed_calls, against_nccl, run);
}
// What the model says is a part of the key by itself; no answer depends on where a step time is
// from.
auto members(Is<TrainingQuery> auto& query) {
  auto& [model, exchange, type, batch, step_s, step_source, fusion_bytes, overlap] = query;
  return std::tie(exchange, type, batch, step_s, fusion_bytes, overlap);
}
auto members(Is<Tensor> auto& tensor) {
  auto& [name, elements, uses] = tensor;
  return std::tie(name, elements, uses);
}
// Iterations are made of the tensors, and of how long which pass takes.
auto members(Is<Model> auto& model) {
  return std::tie(model.name, model.backward_to_forward, model.tensors);
}

template <class Value>
concept IsRecord = requires(Value& value) {
  members(value);
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
    Json json = Json::array();
    std::apply([&](const auto&... member) { (json.push_back(json_of(member)), ...); },
               members(value));
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
  if (json == "infinity" || json == "-infinity") {
    value = json == "infinity" ? HUGE_VAL : -HUGE_VAL;
  } else {
    json.get_to(value);
  }
}
template <class Value>
void read(const Json& json, Value& value) {
  if constexpr (IsRecord<Value>) {
    std::size_t next = 0;
    std::apply([&](auto&... member) { (read(json.at(next++), member), ...); }, members(value));
  } else if constexpr (IsOptional<Value>) {
    value.reset();
    if (!json.is_null()) read(json, value.emplace());
  } else if constexpr (IsVector<Value>) {
    value.clear();
    for (const Json& one : json) read(one, value.emplace_back());
  } else if constexpr (std::is_enum_v<Value>) {
    int number = 0;
    read(json, number);
    if (number < 0) throw NoRecord("a choice that is none");
    value = static_cast<Value>(number);
  } else if constexpr (std::is_integral_v<Value> && !std::same_as<Value, bool>) {
    if (!json.is_number_integer()) throw NoRecord("no whole number");
    const bool fits = json.is_number_unsigned() ? std::in_range<Value>(json.get<std::uint64_t>())
                                                : std::in_range<Value>(json.get<std::int64_t>());
    if (!fits) throw NoRecord("a number that is too large");
    json.get_to(value);
  } else {
    json.get_to(value);
  }
}

constexpr const char* kOutcome = "outcome";
constexpr const char* kPrediction = "prediction";
constexpr const char* kBaseline = "baseline";
constexpr const char* kErrorKind = "error";
constexpr const char* kDiagnostics = "diagnostics";

/// Throws what was thrown instead of an answer.
void throw_if_error(const Json& record) {
  if (!record.contains(kErrorKind)) return;
  ErrorKind kind = ErrorKind::runtime;
  std::vector<Diagnostic> diagnostics;
  read(record.at(kErrorKind), kind);
  read(record.at(kDiagnostics), diagnostics);
  throw Error(kind, std::move(diagnostics));
}

template <class Answer>
void read_answer(const Json& record, Answer& outcome) {
  throw_if_error(record);
  read(record.at(kOutcome), outcome);
  const RunReport& report = outcome.report;
  const bool is_possible = std::isfinite(report.time_s) && report.time_s >= 0 &&
                           report.message_bytes >= 0 && report.transfers >= 0;
  if (!is_possible) throw NoRecord("figures that cannot be");
}

/// With the lines that messages name.
std::string fingerprint_of(const ProgramFile& file) {
  const HeaderLines& header = file.program.header_lines;
  return fingerprint(fmt::format("{}{},{},{},{},{},{}", print_program(file.program),
                                 header.collective, header.ranks, header.in_place, header.hosts,
                                 header.relays, fmt::join(file.program.lines, ",")));
}

}  // namespace

Json record_of(const Outcome& outcome) { return {{kOutcome, json_of(outcome)}}; }

Json record_of(const TrainingOutcome& outcome) { return {{kOutcome, json_of(outcome)}}; }

Json record_of(const Prediction& prediction) { return {{kPrediction, json_of(prediction)}}; }

Json record_of(const std::optional<Baseline>& baseline) { return {{kBaseline, json_of(baseline)}}; }

Json record_of(const Query& query) { return json_of(query); }

Json record_of(const TuningTable& table) { return json_of(table); }

Json record_of(const Planned& planned) { return json_of(planned); }

Json record_of(const Error& error) {
  return {{kErrorKind, json_of(error.kind())}, {kDiagnostics, json_of(error.diagnostics())}};
}

void read_record(const Json& record, Outcome& outcome) { read_answer(record, outcome); }

void read_record(const Json& record, TrainingOutcome& outcome) { read_answer(record, outcome); }

void read_record(const Json& record, Prediction& prediction) {
  throw_if_error(record);
  read(record.at(kPrediction), prediction);
}

void read_record(const Json& record, std::optional<Baseline>& baseline) {
  throw_if_error(record);
  read(record.at(kBaseline), baseline);
}

void read_record(const Json& record, Query& query) { read(record, query); }

void read_record(const Json& record, TuningTable& table) { read(record, table); }

void read_record(const Json& record, Planned& planned) { read(record, planned); }

std::string fingerprint(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char byte : text) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }
  return fmt::format("{:016x}", hash);
}

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
      for (const auto& file : program_files(study_, stage)) {
        key["programs"].push_back(fingerprint_of(*file));
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
