// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/judged.h"
#include "scenarios/sweep_options.h"

namespace espalier {

/// Makes a back end that executes, by its name: "host", ... Throws Error{usage} for a name that it
/// does not know or of a back end that predicts, and what making that back end throws.
using ExecutorFactory = std::function<std::unique_ptr<Backend>(const std::string& name)>;

/// The back ends that scenarios use. `backends.h` has those of this project.
struct ScenarioBackends {
  std::function<std::unique_ptr<Backend>()> make_simulator;
  ExecutorFactory make_executor;
};

/// A simulated time beside the measured one of a block (MeasuredSeries).
struct ValidatedTime {
  std::string block;  ///< its title
  Query query;
  std::string source;
  std::string fitted;
  double predicted_s = 0;  ///< what a benchmark prints: Outcome::benchmark_s
  double measured_s = 0;
  std::optional<ExpectedError> expected = {};  ///< what the profile says of such times

  /// What the prediction is off by, as a share of what was measured: 0.1 is 10 % too long.
  double error() const { return predicted_s / measured_s - 1; }
};

/// What scenarios found out.
struct ScenarioResults {
  Answers answers;
  std::vector<TrainingOutcome> trained;
  std::vector<Judged> judged;
  std::vector<ValidatedTime> validated;  ///< in the order of blocks, tables and questions
  DiagnosticList unanswered;             ///< why no algorithm applied to a table

  void add(TrainingAnswers more);
  void add(ScenarioResults more);
  /// Every program was right, and every expectation came out as stated.
  bool all_right() const;
};

/// A table that is about to be asked.
struct TableHead {
  const std::vector<Query>& queries;
  int ranks = 0;
  std::size_t label_columns = 0;             ///< that the widest label of an algorithm may take
  const MeasuredSeries* measured = nullptr;  ///< beside the answers; null: nothing was measured
  std::string profile = {};                  ///< see table_profile
};
/// \pre there is a query. Throws what `Study::ranks` and `widest_label` throw.
TableHead head_of(Study& study, const std::vector<Query>& queries,
                  const MeasuredSeries* measured = nullptr);

/// Who is told what happens while scenarios run, in this order; everything may be left as it is.
struct ScenarioObserver {
  std::function<void(std::size_t questions, std::size_t known)> begins = [](std::size_t,
                                                                            std::size_t) {};
  /// A line of a journal is damaged.
  std::function<void(const Diagnostic&)> damaged = [](const Diagnostic&) {};
  std::function<void(const Scenario&)> scenario_begins = [](const Scenario&) {};
  std::function<void(const ScenarioBlock&)> block_begins = [](const ScenarioBlock&) {};

  std::function<void(const TableHead&)> table_begins = [](const TableHead&) {};
  std::function<void(const Outcome&)> answered = [](const Outcome&) {};
  std::function<void(const Answers&)> table_ends = [](const Answers&) {};

  /// The best of a table, or the algorithm named, with real data.
  std::function<void(const Query&)> execution_begins = [](const Query&) {};
  std::function<void(const Outcome& out_of_place, const Outcome& in_place)> executed =
      [](const Outcome&, const Outcome&) {};
  std::function<void(const Answers&)> execution_ends = [](const Answers&) {};

  std::function<void(const TrainingSweep&)> training_begins = [](const TrainingSweep&) {};
  std::function<void(const TrainingOutcome&)> trained = [](const TrainingOutcome&) {};
  std::function<void(const TrainingAnswers&)> training_ends = [](const TrainingAnswers&) {};

  std::function<void(const ScenarioBlock&, const std::vector<Judged>&)> block_ends =
      [](const ScenarioBlock&, const std::vector<Judged>&) {};
  std::function<void(const Scenario&, const ScenarioResults&)> scenario_ends =
      [](const Scenario&, const ScenarioResults&) {};

  /// Between all of these, while answers are awaited and as they come in; see SweepProgress.
  std::function<void(std::string_view label)> waiting = [](std::string_view) {};
  std::function<void(std::string_view label)> received = [](std::string_view) {};
};

/// What became of a shard.
struct ShardResults {
  std::size_t questions = 0;  ///< of all shards
  std::size_t left = 0;       ///< to other shards
};

/// Answers the questions of one shard into the journal, and prints, executes and judges nothing.
/// Throws what `ScenarioSweep` throws. \pre there is a journal
ShardResults answer_shard(const std::vector<Scenario>& scenarios, const ScenarioBackends& backends,
                          const SweepOptions& options, const ScenarioObserver& observer = {});

/// Asks everything that the scenarios ask, executes what they execute, and judges the answers.
/// Throws Error{input} at the line that names an unknown back end, and what `ScenarioSweep` throws.
/// That something is not possible on a machine is an answer. Where journals are merged that lack
/// answers, and there is none to keep them: Error{input}.
ScenarioResults run_scenarios(const std::vector<Scenario>& scenarios,
                              const ScenarioBackends& backends, const SweepOptions& options = {},
                              const ScenarioObserver& observer = {});

}  // namespace espalier
