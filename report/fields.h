// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "report/json.h"
#include "scenarios/answers.h"

// The fields of reports, each listed once: objects of JSON and rows of CSV follow from these lists.
// docs/reports.md says what they mean.

namespace espalier {

template <class Answer>
struct ReportField {
  std::string_view name;
  /// The figure or text; a discarded value leaves the key out, null does not.
  Json (*value)(const Answer& answer) = nullptr;
  bool is_in_json = true;  ///< else it is for tables only
};

/// The columns of CSV, in their order: fields, and what was measured.
const std::vector<std::string_view>& table_columns();

/// Of results of kind `report`, `training` and `skipped`, in the order of their keys, without what
/// is a list (links, buckets, steps).
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

/// What all fields say, those for tables too.
template <class Answer>
Json row_of(const std::vector<ReportField<Answer>>& fields, const Answer& answer) {
  Json row = Json::object();
  for (const ReportField<Answer>& field : fields) {
    row[std::string(field.name)] = field.value(answer);
  }
  return row;
}

/// The field of that name; null when these answers have none.
template <class Answer>
const ReportField<Answer>* find_field(const std::vector<ReportField<Answer>>& fields,
                                      std::string_view name) {
  const auto field = std::ranges::find(fields, name, &ReportField<Answer>::name);
  return field == fields.end() ? nullptr : &*field;
}

}  // namespace espalier
