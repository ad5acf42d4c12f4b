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

std::string csv_cell(const Json& value) {
  if (value.is_null() || value.is_discarded()) return {};
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

/// The columns of a table of several kinds of rows, each once: those of the first kind, then what
/// others have besides, and at last those that tell who asked.
class Columns {
 public:
  template <class Answer>
  void add(const std::vector<ReportField<Answer>>& fields) {
    std::vector<std::pair<int, std::string>> mine;
    for (const ReportField<Answer>& field : fields) {
      if (field.column > 0) mine.emplace_back(field.column, field.name);
    }
    std::ranges::sort(mine);
    for (const auto& [column, name] : mine) {
      auto& columns = column < kStudyColumns ? figures_ : askers_;
      if (std::ranges::count(columns, name) == 0) columns.push_back(name);
    }
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all = figures_;
    all.insert(all.end(), askers_.begin(), askers_.end());
    return all;
  }

 private:
  std::vector<std::string> figures_;
  std::vector<std::string> askers_;
};

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
  const auto& outcomes = results.answers.outcomes;
  Columns columns;
  if (results.trained.empty() || !outcomes.empty()) columns.add(outcome_fields());
  if (!results.trained.empty()) columns.add(training_fields());
  columns.add(skipped_fields());
  std::vector<Json> rows;
  for (const Outcome& one : outcomes) rows.push_back(row_of(outcome_fields(), one));
  for (const TrainingOutcome& one : results.trained) rows.push_back(row_of(training_fields(), one));
  for (const Skipped& one : results.answers.skipped) rows.push_back(row_of(skipped_fields(), one));

  const std::vector<std::string> names = columns.names();
  std::string text = join(names, ",") + "\r\n";
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& name : names) {
      const auto value = row.find(name);
      cells.push_back(value == row.end() ? "" : csv_cell(*value));
    }
    text += join(cells, ",") + "\r\n";
  }
  return text;
}

}  // namespace espalier
