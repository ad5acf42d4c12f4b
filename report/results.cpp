// SPDX-License-Identifier: Apache-2.0
#include "report/results.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "report/csv.h"
#include "report/fields.h"
#include "report/objects.h"

namespace espalier {

namespace {

/// Those that the rows have. What was skipped fills the columns of what ran.
std::vector<std::string_view> columns_of(bool has_collectives, bool has_training) {
  std::vector<std::string_view> columns = table_columns();
  std::erase_if(columns, [&](std::string_view name) {
    const bool is_measured = name.starts_with("measured_");
    return !(has_collectives && (is_measured || find_field(outcome_fields(), name) != nullptr)) &&
           !(has_training && find_field(training_fields(), name) != nullptr);
  });
  return columns;
}

void add_skipped(const std::vector<Skipped>& skipped, CsvText& text) {
  for (const Skipped& one : skipped) text.add(row_of(skipped_fields(), one));
}

}  // namespace

const ValidatedTime* measured_of(const ScenarioResults& results, const Outcome& outcome) {
  if (!outcome.report.simulated) return nullptr;
  const Query& asked = outcome.query;
  const auto measured = std::ranges::find_if(results.validated, [&](const ValidatedTime& one) {
    const Query& query = one.query;
    return one.block == outcome.asked_by.block && query.size_bytes == asked.size_bytes &&
           query.algorithm == asked.algorithm && query.topology == asked.topology &&
           query.gpus == asked.gpus && query.profile == asked.profile;
  });
  return measured == results.validated.end() ? nullptr : &*measured;
}

std::string results_json(const ScenarioResults& results) {
  Json all = Json::array();
  for (const Outcome& outcome : results.answers.outcomes) {
    all.push_back(report_json(outcome));
    if (const ValidatedTime* measured = measured_of(results, outcome)) {
      all.back()["measured"] = {{"time_s", rounded(measured->measured_s)},
                                {"error", rounded(measured->error())},
                                {"source", measured->source}};
    }
  }
  for (const TrainingOutcome& outcome : results.trained) all.push_back(training_json(outcome));
  for (const Skipped& one : results.answers.skipped) all.push_back(skipped_json(one));
  for (const Judged& one : results.judged) all.push_back(judged_json(one));
  return dump_results(kReportSchema, std::move(all));
}

std::string results_csv(const ScenarioResults& results) {
  const bool has_training = !results.trained.empty();
  CsvText text(columns_of(!has_training || !results.answers.outcomes.empty(), has_training));
  for (const Outcome& one : results.answers.outcomes) {
    Json row = row_of(outcome_fields(), one);
    if (const ValidatedTime* measured = measured_of(results, one)) {
      row["measured_s"] = rounded(measured->measured_s);
      row["measured_error"] = rounded(measured->error());
    }
    text.add(row);
  }
  for (const TrainingOutcome& one : results.trained) text.add(row_of(training_fields(), one));
  add_skipped(results.answers.skipped, text);
  return text.finish();
}

std::string answers_csv(const Answers& answers) {
  CsvText text(columns_of(true, false));
  for (const Outcome& one : answers.outcomes) text.add(row_of(outcome_fields(), one));
  add_skipped(answers.skipped, text);
  return text.finish();
}

std::string answers_csv(const TrainingAnswers& answers) {
  CsvText text(columns_of(false, true));
  for (const TrainingOutcome& one : answers.outcomes) text.add(row_of(training_fields(), one));
  add_skipped(answers.skipped, text);
  return text.finish();
}

}  // namespace espalier
