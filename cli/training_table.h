// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/json.h"
#include "scenarios/training_study.h"

namespace espalier {

/// The rows of a table of training: one line for each outcome that ran, in the order asked.
class TrainingTable {
 public:
  TrainingTable(const Console& console, const std::vector<std::string>& algorithms);

  /// What all rows share: the question, whose GPUs hold `ranks` ranks if all take part, and where
  /// the time of an iteration on one GPU comes from.
  void header(const TrainingQuery& question, int ranks, const std::string& step_source) const;
  void row(const TrainingOutcome& outcome);

 private:
  const Console& console_;
  std::size_t label_width_ = 9;
  bool has_names_ = false;
};

/// The buckets of one run, and when each was exchanged.
void print_buckets(const Console& console, const TrainingOutcome& outcome);

/// One outcome as `espalier.training/1` (docs/reports.md).
Json training_json(const TrainingOutcome& outcome, const std::string& step_source);

/// The timeline of one run, whose ops are called after what they are part of.
std::string training_trace(const TrainingOutcome& outcome);

}  // namespace espalier
