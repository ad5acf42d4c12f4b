// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "cli/console.h"
#include "scenarios/answers.h"
#include "scenarios/training_sweep.h"

namespace espalier {

/// Prints a table of iterations of training, row by row, in the order asked.
class TrainingTable {
 public:
  /// Prints what all rows share. The console must outlive it.
  TrainingTable(const Console& console, const TrainingSweep& sweep);

  /// The row of an outcome; nothing when it did not run.
  void add(const TrainingOutcome& outcome);
  /// What stands below the table.
  void finish(const TrainingAnswers& answers);

 private:
  const Console& console_;
  std::size_t label_width_ = 9;
  bool has_names_ = false;
};

/// The buckets of one run, and when each was exchanged.
void print_buckets(const Console& console, const TrainingOutcome& outcome);

}  // namespace espalier
