// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/answers.h"
#include "scenarios/tables.h"
#include "scenarios/tuner.h"

namespace espalier {

/// What `--json` writes, as `espalier.report/2`: what ran, then what was skipped. Numbers are
/// rounded to ten digits; everything but wall_s is the same for every run of a simulation. Ends
/// with a line end.
std::string answers_json(const Answers& answers);
std::string answers_json(const TrainingAnswers& answers);

/// As `espalier.compare/2`; `where` is what the machine is called.
std::string comparisons_json(const Comparisons& comparisons, std::string_view where);
/// A row for each of them.
std::string comparisons_csv(const Comparisons& comparisons, std::string_view where);

/// As `espalier.tune/2`; the outcomes are those of the choices.
std::string tuning_json(const Tuning& tuning, const std::vector<Outcome>& outcomes);

}  // namespace espalier
