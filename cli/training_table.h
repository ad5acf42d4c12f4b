// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/json.h"
#include "cli/sweep.h"
#include "scenarios/training_sweep.h"

namespace espalier {

/// What came out, in the order asked, without programs and timelines, which may be large.
struct TrainingAnswers {
  std::vector<TrainingOutcome> outcomes;
  Answers refused;  ///< what did not run

  void add(TrainingOutcome outcome);
  void label(const AskedBy& asked_by);  ///< notes who asked all this
  /// The fastest on most GPUs; null when nothing ran.
  const TrainingOutcome* best() const;
};

/// Who answers the queries of a table, and the bar that is in the way of what is printed.
struct AskingTraining {
  std::function<TrainingOutcome(const TrainingQuery& query)> ask;
  Progress& progress;
};

/// "ring resnet50": the label of a step of a progress bar.
std::string progress_label(const TrainingQuery& query);

/// Asks the queries of a sweep. When `print`, writes a table, a line for each outcome that ran as
/// soon as it is known, and what did not apply.
TrainingAnswers train_table(const Console& console, const TrainingSweep& sweep,
                            const AskingTraining& asking, bool print);

/// The buckets of one run, and when each was exchanged.
void print_buckets(const Console& console, const TrainingOutcome& outcome);

/// One outcome as `espalier.training/1` (docs/reports.md).
Json training_json(const TrainingOutcome& outcome);

/// The columns of outcomes in a table (see csv_text), and one of its rows: figures as in JSON.
const std::vector<std::string>& training_columns();
Json training_row(const TrainingOutcome& outcome);

/// The timeline of one run, whose ops are called after what they are part of.
std::string training_trace(const TrainingOutcome& outcome);

}  // namespace espalier
