// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "scenarios/scenario_runner.h"

namespace espalier {

/// What `run --json` writes: collectives, training, what was skipped, expectations. An object when
/// it is one, else an array.
std::string results_json(const ScenarioResults& results);

/// The rows as comma-separated values (RFC 4180), a header line first: collectives, then training,
/// then what was skipped. Columns that several have are one; cells are empty where a row has no
/// such figure.
std::string results_csv(const ScenarioResults& results);

}  // namespace espalier
