// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "cli/console.h"
#include "cli/exec_table.h"
#include "cli/sim_table.h"
#include "cli/table_notes.h"
#include "cli/training_table.h"
#include "scenarios/scenario_runner.h"

namespace espalier {

/// How much of scenarios is shown.
struct ScenarioView {
  bool print = true;  ///< else progress and problems only
  int links = 0;      ///< busiest links of the best answer of each table
};

/// Shows scenarios one after the other, as their answers come in.
class ScenarioConsole {
 public:
  /// The console must outlive it.
  ScenarioConsole(const Console& console, const ScenarioView& view)
      : console_(console), view_(view), refusals_(console) {}

  /// What calls this object, which must outlive it.
  ScenarioObserver observer();

 private:
  // Each sets the functions that belong together.
  void observe_blocks(ScenarioObserver& observer);
  void observe_tables(ScenarioObserver& observer);
  void observe_executions(ScenarioObserver& observer);
  void observe_training(ScenarioObserver& observer);

  void title(std::string_view mark, std::string_view text, const std::string& note);
  void end_table(const Answers& answers);
  void end_block(const ScenarioBlock& block, const std::vector<Judged>& judged);

  const Console& console_;
  ScenarioView view_;
  std::optional<Progress> progress_;
  Refusals refusals_;
  std::optional<SimTable> table_;
  std::optional<ExecTable> execution_;
  std::optional<TrainingTable> training_;
};

}  // namespace espalier
