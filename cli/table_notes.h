// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/console.h"
#include "scenarios/training_study.h"

namespace espalier {

/// Where a table shows what was chosen: in the rows' labels ("optimal (fabric=1)", the defaults
/// left out), or the whole choice ("optimal:fabric=1,strips=0").
enum class ShownChoice { in_label, whole };

/// What stands below a table of outcomes so that its labels can be understood: what the parameters
/// mean whose values were chosen ("optimal (fabric=1)"), and what is to be known about programs,
/// each once. Nothing where there is nothing to explain.
void print_table_notes(const Console& console, const std::vector<Outcome>& outcomes,
                       ShownChoice shown = ShownChoice::in_label);
/// The notes of iterations of training, each once.
void print_table_notes(const Console& console, const std::vector<TrainingOutcome>& outcomes);

}  // namespace espalier
