// SPDX-License-Identifier: Apache-2.0
#include "report/results.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/words.h"
#include "report/fields.h"
#include "report/objects.h"

namespace espalier {

namespace {

/// GPUs, the only lists in tables, are written as ranges.
std::string text_of(const Json& value) {
  if (value.is_null() || value.is_discarded()) return {};
  if (value.is_array()) return format_ranges(value.get<std::vector<int>>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string csv_cell(const Json& value) {
  const std::string text = text_of(value);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

template <class Answer>
void add_row(const std::vector<ReportField<Answer>>& fields, const Answer& answer,
             const std::vector<std::string_view>& columns, std::string& text) {
  std::vector<std::string> cells;
  for (const std::string_view column : columns) {
    const ReportField<Answer>* field = find_field(fields, column);
    cells.push_back(field == nullptr ? "" : csv_cell(field->value(answer)));
  }
  text += join(cells, ",") + "\r\n";
}

/// Those that the rows have. What was skipped fills the columns of what ran.
std::vector<std::string_view> columns_of(const ScenarioResults& results) {
  const bool has_training = !results.trained.empty();
  const bool has_collectives = !has_training || !results.answers.outcomes.empty();
  std::vector<std::string_view> columns = table_columns();
  std::erase_if(columns, [&](std::string_view name) {
    return !(has_collectives && find_field(outcome_fields(), name) != nullptr) &&
           !(has_training && find_field(training_fields(), name) != nullptr);
  });
  return columns;
}

}  // namespace

std::string results_json(const ScenarioResults& results) {
  Json all = Json::array();
  for (const Outcome& outcome : results.answers.outcomes) all.push_back(report_json(outcome));
  for (const TrainingOutcome& outcome : results.trained) all.push_back(training_json(outcome));
  for (const Skipped& one : results.answers.skipped) all.push_back(skipped_json(one));
  for (const Judged& one : results.judged) all.push_back(judged_json(one));
  return dump_one_or_array(all);
}

std::string results_csv(const ScenarioResults& results) {
  const std::vector<std::string_view> columns = columns_of(results);
  std::string text = join({columns.begin(), columns.end()}, ",") + "\r\n";
  for (const Outcome& one : results.answers.outcomes) {
    add_row(outcome_fields(), one, columns, text);
  }
  for (const TrainingOutcome& one : results.trained) {
    add_row(training_fields(), one, columns, text);
  }
  for (const Skipped& one : results.answers.skipped) {
    add_row(skipped_fields(), one, columns, text);
  }
  return text;
}

}  // namespace espalier
