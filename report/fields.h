// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/json.h"
#include "scenarios/answers.h"

// The fields of reports, each listed once: objects of JSON and rows of CSV follow from these lists.
// docs/reports.md says what they mean.

namespace espalier {

/// Columns from this one on tell who asked, and stand at the end of a table.
inline constexpr int kStudyColumns = 100;
/// In a column that other rows have; it makes none of its own.
inline constexpr int kFills = -1;

template <class Answer>
struct ReportField {
  std::string_view name;
  int column = 0;  ///< its place among the columns of CSV; 0: none
  bool is_in_json = true;
  /// The figure or text; a discarded value leaves the key out, null does not.
  Json (*value)(const Answer& answer) = nullptr;
};

/// Of `espalier.report/1`, `espalier.training/1` and `espalier.skipped/1`, in the order of their
/// keys, without what is a list (links, buckets, steps).
const std::vector<ReportField<Outcome>>& outcome_fields();
const std::vector<ReportField<TrainingOutcome>>& training_fields();
const std::vector<ReportField<Skipped>>& skipped_fields();

/// What a field has where it has nothing to say.
inline Json left_out() { return Json(Json::value_t::discarded); }

/// The keys of an object.
template <class Answer>
Json object_of(const std::vector<ReportField<Answer>>& fields, const Answer& answer) {
  Json json = Json::object();
  for (const ReportField<Answer>& field : fields) {
    if (!field.is_in_json) continue;
    Json value = field.value(answer);
    if (!value.is_discarded()) json[std::string(field.name)] = std::move(value);
  }
  return json;
}

/// The cells of a row, by column.
template <class Answer>
Json row_of(const std::vector<ReportField<Answer>>& fields, const Answer& answer) {
  Json row = Json::object();
  for (const ReportField<Answer>& field : fields) {
    if (field.column != 0) row[std::string(field.name)] = field.value(answer);
  }
  return row;
}

}  // namespace espalier
