// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "core/error.h"
#include "scenarios/training_study.h"

// Questions and answers as they go from process to process and into journals: every figure to the
// last bit, unlike those of reports.

namespace espalier {

/// What became of questions: their outcomes without programs and timelines, or what was thrown.
Json record_of(const std::vector<Outcome>& outcomes);
Json record_of(const std::vector<TrainingOutcome>& outcomes);
Json record_of(const Error& error);
bool is_error_record(const Json& record);

/// Reads a record back. `queries` are those it answers. Throws the Error of a record of one, and
/// nlohmann::json::exception when it is none.
std::vector<Outcome> outcomes_of(const Json& record, const std::vector<Query>& queries);
std::vector<TrainingOutcome> outcomes_of(const Json& record,
                                         const std::vector<TrainingQuery>& queries);

/// All that an answer depends on: the question, the machine, the model, tables it reads, and this
/// program. Throws what loading the machine or the table throws.
Json key_of(const std::vector<Query>& queries);
Json key_of(const std::vector<TrainingQuery>& queries);

}  // namespace espalier
