// SPDX-License-Identifier: Apache-2.0
#include "report/outcomes.h"

#include <utility>

#include "report/csv.h"
#include "report/fields.h"
#include "report/objects.h"
#include "scenarios/baseline.h"

namespace espalier {

namespace {

Json links_json(const SimulatedPart& simulated) {
  Json links = Json::array();
  for (const LinkUse& link : simulated.links) {
    links.push_back({{"name", link.name},
                     {"bytes", rounded(link.bytes)},
                     {"busy_s", rounded(link.busy_s)},
                     {"utilization", rounded(link.utilization)}});
    if (link.alike > 1) links.back()["alike"] = link.alike;
  }
  return links;
}

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

Json buckets_json(const TrainingOutcome& outcome) {
  Json buckets = Json::array();
  for (const BucketOutcome& bucket : outcome.buckets) {
    buckets.push_back({{"tensors", bucket.bucket.last - bucket.bucket.first},
                       {"bytes", bucket.bytes},
                       {"algorithm", bucket.algorithm},
                       {"ready_s", rounded(bucket.ready_s)},
                       {"begin_s", rounded(bucket.begin_s)},
                       {"end_s", rounded(bucket.end_s)}});
  }
  return buckets;
}

Json reports_array(const std::vector<Outcome>& outcomes) {
  Json all = Json::array();
  for (const Outcome& outcome : outcomes) all.push_back(report_json(outcome));
  return all;
}

/// What was measured of a library. \pre it was
Json library_json(const Comparison& one) {
  const ExecutedPart& executed = *one.library->report.executed;
  const auto speedup = one.measured_speedup();
  const auto predicted = one.predicted_speedup();
  return {{"name", one.library->backend},
          {"measured_s", rounded(executed.median_time_s)},
          {"min_time_s", rounded(executed.min_time_s)},
          {"max_time_s", rounded(executed.max_time_s)},
          {"wrong", executed.wrong ? Json(*executed.wrong) : Json()},
          {"speedup", speedup ? rounded(*speedup) : Json()},
          {"predicted_speedup", predicted ? rounded(*predicted) : Json()},
          {"notes", executed.notes}};
}

/// Figures that were not as probed while a row was measured.
Json changed_json(const std::vector<CheckedFigure>& changed) {
  Json all = Json::array();
  for (const CheckedFigure& one : changed) {
    all.push_back({{"figure", one.name},
                   {"working_set_bytes", one.bytes},
                   {"probed_gbps", rounded(one.probed_gbps)},
                   {"now_gbps", rounded(one.now_gbps)}});
  }
  return all;
}

Json comparison_json(const Comparison& one) {
  const Query& query = one.measured.query;
  const RunReport& measured = one.measured.report;
  const ExecutedPart& executed = *measured.executed;
  const bool has_runs = executed.max_time_s > 0;  // a log has only their mean
  Json json = {{"kind", "comparison"},
               {"collective", to_string(query.collective)},
               {"algorithm", query.algorithm},
               {"in_place", query.in_place},
               {"ranks", one.measured.ranks},
               {"size_bytes", measured.message_bytes},
               {"chunk_bytes", one.measured.chunk_bytes},
               {"predicted_s", rounded(one.predicted_s())},
               {"measured_s", rounded(executed.median_time_s)},
               {"min_time_s", has_runs ? rounded(executed.min_time_s) : Json()},
               {"max_time_s", has_runs ? rounded(executed.max_time_s) : Json()},
               {"error", rounded(one.error())},
               {"wrong", executed.wrong ? Json(*executed.wrong) : Json()}};
  if (!one.measured.chosen.empty()) json["chosen"] = one.measured.chosen;
  // Of the prediction: how it was launched, how far off it is expected to be, and NCCL.
  for (const std::string_view name : {"launch", "error", "nccl"}) {
    const Json value = find_field(outcome_fields(), name)->value(one.predicted);
    const std::string key = name == "error" ? "expected_error" : std::string(name);
    if (!value.is_discarded()) json[key] = value;
  }
  if (one.library) json["library"] = library_json(one);
  if (one.changed) json["changed"] = changed_json(*one.changed);
  return json;
}

Json candidates_json(const std::vector<CandidateTimes>& candidates) {
  Json all = Json::array();
  for (const CandidateTimes& one : candidates) {
    Json times = Json::array();
    for (const TuningRow& time : one.times) {
      times.push_back({{"size_bytes", time.up_to_bytes},
                       {"time_s", rounded(time.time_s)},
                       {"chunk_bytes", time.chunk_bytes}});
      if (time.algorithm != one.algorithm) times.back()["chosen"] = time.algorithm;
    }
    all.push_back({{"algorithm", one.algorithm}, {"times", std::move(times)}});
  }
  return all;
}

/// What all rows share.
Json of_all_rows(const Comparisons& comparisons, std::string_view where) {
  Json json = {{"machine", where}};
  if (comparisons.rows.empty()) return json;
  json["profile"] = comparisons.rows.front().measured.query.profile;
  json["backend"] = comparisons.rows.front().measured.backend;
  return json;
}

}  // namespace

Json gpu_numbers(const Query& query, int ranks) {
  Json numbers = Json::array();
  if (query.topology.empty()) return numbers;
  for (int rank = 0; rank < ranks; ++rank) {
    numbers.push_back(query.gpus.empty() ? rank : query.gpus[static_cast<std::size_t>(rank)]);
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

Json budget_json(const GrantedTime& budget) {
  return {{"seconds", rounded(budget.seconds)}, {"ran_out", budget.ran_out}};
}

Json report_json(const Outcome& outcome) {
  const RunReport& report = outcome.report;
  const SimulatedPart simulated = report.simulated.value_or(SimulatedPart{});
  Json json = object_of(outcome_fields(), outcome);
  json["bound"] = outcome.bound ? bound_json(*outcome.bound, outcome.fraction) : Json();
  if (outcome.bound) {
    json["bound"]["time_s"] = rounded(outcome.least_s());
    json["bound"]["time_certificate"] = outcome.time_bound->certificate;
  }
  json["links"] = links_json(simulated);
  json["critical_path"] = critical_path_json(simulated);
  json["critical_path_steps"] = simulated.critical_steps;
  json["wall_s"] = rounded(report.wall_s);
  return json;
}

Json training_json(const TrainingOutcome& outcome) {
  Json json = object_of(training_fields(), outcome);
  json["buckets"] = buckets_json(outcome);
  json["links"] = links_json(*outcome.report.simulated);
  json["wall_s"] = rounded(outcome.report.wall_s);
  return json;
}

Json skipped_json(const Skipped& one) { return object_of(skipped_fields(), one); }

std::string answers_json(const Answers& answers) {
  Json all = reports_array(answers.outcomes);
  for (const Skipped& one : answers.skipped) all.push_back(skipped_json(one));
  return dump_results(kReportSchema, std::move(all));
}

std::string answers_json(const TrainingAnswers& answers) {
  Json all = Json::array();
  for (const TrainingOutcome& outcome : answers.outcomes) all.push_back(training_json(outcome));
  for (const Skipped& one : answers.skipped) all.push_back(skipped_json(one));
  return dump_results(kReportSchema, std::move(all));
}

std::string comparisons_json(const Comparisons& comparisons, std::string_view where) {
  const auto or_null = [](std::optional<double> error) { return error ? rounded(*error) : Json(); };
  Json of_all = of_all_rows(comparisons, where);
  of_all["median_error"] = or_null(comparisons.median_error());
  of_all["median_error_from_16MiB"] = or_null(comparisons.median_error(kLargeMessage));
  if (comparisons.are_checked()) {
    of_all["median_error_as_probed"] = or_null(comparisons.median_error_as_probed());
    of_all["median_error_as_probed_from_16MiB"] =
        or_null(comparisons.median_error_as_probed(kLargeMessage));
  }
  Json results = Json::array();
  for (const Comparison& one : comparisons.rows) results.push_back(comparison_json(one));
  for (const Skipped& one : comparisons.measured.skipped) results.push_back(skipped_json(one));
  return dump_results("espalier.compare/2", std::move(results), of_all);
}

std::string comparisons_csv(const Comparisons& comparisons, std::string_view where) {
  CsvText text({"machine",     "profile",        "backend",    "collective",    "algorithm",
                "chosen",      "in_place",       "ranks",      "size_bytes",    "chunk_bytes",
                "predicted_s", "expected_error", "measured_s", "min_time_s",    "max_time_s",
                "error",       "wrong",          "launch",     "speedup",       "refused",
                "skipped",     "library",        "library_s",  "library_wrong", "measured_speedup",
                "as_probed"});
  const Json of_all = of_all_rows(comparisons, where);
  for (const Comparison& one : comparisons.rows) {
    Json row = comparison_json(one);
    row.update(of_all);
    for (const std::string_view name : {"expected_error", "speedup"}) {
      row[std::string(name)] = find_field(outcome_fields(), name)->value(one.predicted);
    }
    if (one.changed) row["as_probed"] = one.changed->empty();
    if (one.library) {
      const Json library = library_json(one);
      row["library"] = library["name"];
      row["library_s"] = library["measured_s"];
      row["library_wrong"] = library["wrong"];
      row["measured_speedup"] = library["speedup"];
    }
    text.add(row);
  }
  for (const Skipped& one : comparisons.measured.skipped) {
    Json row = row_of(skipped_fields(), one);
    row.update(of_all);
    text.add(row);
  }
  return text.finish();
}

std::string tuning_json(const Tuning& tuning, const std::vector<Outcome>& outcomes) {
  Json front = Json::array();
  for (const FrontPoint& point : tuning.front) {
    front.push_back({{"algorithm", point.algorithm},
                     {"latency_s", rounded(point.latency_s)},
                     {"algbw_gbps", rounded(point.algbw_gbps)},
                     {"on_front", point.on_front}});
  }
  Json keep_nccl = Json::array();
  for (const Outcome& outcome : outcomes) {
    if (keeps_library(outcome)) keep_nccl.push_back(outcome.report.message_bytes);
  }
  Json of_all = {{"front", std::move(front)},
                 {"candidates", candidates_json(tuning.candidates)},
                 {"keep_nccl", std::move(keep_nccl)}};
  if (tuning.budget) {
    of_all["budget"] = budget_json(*tuning.budget);
    of_all["not_asked"] = tuning.unasked;
  }
  return dump_results("espalier.tune/2", reports_array(outcomes), of_all);
}

}  // namespace espalier
