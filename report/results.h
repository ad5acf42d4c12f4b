// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "scenarios/scenario_runner.h"

namespace espalier {

/// What was measured of the question that an outcome answers; null where nothing was.
const ValidatedTime* measured_of(const ScenarioResults& results, const Outcome& outcome);

/// What `run --json` writes: collectives, training, what was skipped, expectations, as
/// `espalier.report/2`.
std::string results_json(const ScenarioResults& results);

/// The rows as comma-separated values (RFC 4180), a header line first: collectives, then training,
/// then what was skipped. Columns that several have are one; cells are empty where a row has no
/// such figure.
std::string results_csv(const ScenarioResults& results);

/// The same of what was asked without a scenario.
std::string answers_csv(const Answers& answers);
std::string answers_csv(const TrainingAnswers& answers);

}  // namespace espalier
