// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/words.h"
#include "scenarios/describe.h"
#include "scenarios/scenario_sweep.h"
#include "scenarios/tables.h"

namespace espalier {

namespace {

/// Timed and untimed runs of a scenario's execution: it is a check more than a measurement.
constexpr int kIterations = 5;
constexpr int kWarmup = 1;

/// A back end that scenarios execute with, or why there is none here.
struct Executor {
  std::unique_ptr<Backend> backend;
  std::string unavailable;
};
using Executors = std::map<std::string, Executor>;

/// Made before anything is answered, so that a wrong name shows at once.
Executors make_executors(const std::vector<Scenario>& scenarios, const ExecutorFactory& make) {
  Executors executors;
  DiagnosticList problems;
  for (const Scenario& scenario : scenarios) {
    for (const ScenarioBlock& block : scenario.blocks) {
      const auto* study = std::get_if<CollectiveStudy>(&block.study);
      if (study == nullptr || !study->execute) continue;
      const ScenarioExecution& execution = *study->execute;
      if (executors.contains(execution.backend)) continue;
      try {
        executors.emplace(execution.backend, Executor{make(execution.backend), {}});
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::unsupported) {
          const std::string& reason = error.diagnostics().front().message;
          executors.emplace(execution.backend, Executor{nullptr, reason});
          continue;
        }
        for (Diagnostic problem : error.diagnostics()) {
          problem.where = execution.where;
          problems.add(std::move(problem));
        }
      }
    }
  }
  problems.throw_if_any();
  return executors;
}

/// No algorithm applied to a table. Tables may have the same to say.
void note_unanswered(const ScenarioBlock& block, const std::vector<Skipped>& skipped,
                     DiagnosticList& unanswered) {
  if (std::ranges::any_of(skipped, &Skipped::is_refused)) return;
  for (const Skipped& one : skipped) {
    std::string message = fmt::format("{}: {} is not possible on {}: {}", quote(block.title),
                                      one.algorithm, one.topology, one.reason);
    if (std::ranges::count(unanswered.all(), message, &Diagnostic::message) > 0) continue;
    unanswered.add({}, std::move(message), one.instead);
  }
}

void begin(const ScenarioSweep& sweep, const ScenarioObserver& observer) {
  for (const Diagnostic& line : sweep.damaged()) observer.damaged(line);
  observer.begins(sweep.questions(), sweep.known());
}

class Runner {
 public:
  Runner(const std::vector<Scenario>& scenarios, const ScenarioBackends& backends,
         const SweepOptions& options, const ScenarioObserver& observer)
      : options_(options),
        observer_(observer),
        simulator_(backends.make_simulator()),
        sweep_(scenarios, *simulator_, options),
        executors_(make_executors(scenarios, backends.make_executor)) {
    begin(sweep_, observer_);
    const bool is_merge = !options.merged.empty() && options.journal.empty();
    if (const std::size_t open = sweep_.questions() - sweep_.known(); is_merge && open > 0) {
      throw Error(ErrorKind::input,
                  fmt::format("{} of {} questions have no answer in these journals", open,
                              sweep_.questions()),
                  "run the shards that are missing, or name a journal with --resume to answer them "
                  "now");
    }
  }

  ScenarioResults run(const Scenario& scenario) {
    ScenarioResults results;
    observer_.scenario_begins(scenario);
    for (const ScenarioBlock& block : scenario.blocks) {
      observer_.block_begins(block);
      std::vector<Judged> judged = std::visit(
          [&](const auto& study) { return ask(scenario, block, study, results); }, block.study);
      observer_.block_ends(block, judged);
      std::ranges::move(judged, std::back_inserter(results.judged));
    }
    observer_.scenario_ends(scenario, results);
    return results;
  }

 private:
  std::vector<Judged> ask(const Scenario& scenario, const ScenarioBlock& block,
                          const CollectiveStudy& study, ScenarioResults& results) {
    std::vector<Answers> tables;
    std::vector<Answers> executed;
    for (const std::vector<Query>& queries : study.tables) {
      tables.push_back(ask(queries, study.measured));
      const Outcome* best = tables.back().best();
      const bool executes = study.execute && best != nullptr;
      executed.push_back(executes ? execute(*study.execute, *best) : Answers{});
      if (best == nullptr) note_unanswered(block, tables.back().skipped, results.unanswered);
    }
    std::vector<Judged> judged = judge_block(scenario.name, block, tables);
    if (study.measured) validate(block, *study.measured, tables, results.validated);
    for (std::size_t table = 0; table < tables.size(); ++table) {
      for (Outcome& outcome : tables[table].outcomes) drop_details(outcome.report);
      tables[table].label({scenario.name, block.title});
      executed[table].label({scenario.name, block.title});
      results.answers.add(std::move(tables[table]));
      results.answers.add(std::move(executed[table]));
    }
    return judged;
  }

  static void validate(const ScenarioBlock& block, const MeasuredSeries& measured,
                       const std::vector<Answers>& tables, std::vector<ValidatedTime>& validated) {
    for (const Answers& answers : tables) {
      for (const Outcome& outcome : answers.outcomes) {
        validated.push_back({block.title, outcome.query, measured.source, measured.fitted,
                             outcome.benchmark_s, measured.time_s.at(outcome.query.size_bytes),
                             outcome.error});
      }
    }
  }

  std::vector<Judged> ask(const Scenario& scenario, const ScenarioBlock& block,
                          const TrainingStudy& study, ScenarioResults& results) {
    std::vector<TrainingAnswers> tables;
    for (const TrainingSweep& sweep : study.tables) {
      observer_.training_begins(sweep);
      const auto train = [&](const TrainingQuery& query) { return sweep_.train(query, progress_); };
      tables.push_back(train_table(sweep, train, observer_.trained));
      observer_.training_ends(tables.back());
      if (tables.back().outcomes.empty()) {
        note_unanswered(block, tables.back().skipped, results.unanswered);
      }
    }
    std::vector<Judged> judged = judge_block(scenario.name, block, tables);
    for (TrainingAnswers& answers : tables) {
      for (TrainingOutcome& outcome : answers.outcomes) drop_details(outcome.report);
      answers.label({scenario.name, block.title});
      results.add(std::move(answers));
    }
    return judged;
  }

  Answers ask(const std::vector<Query>& queries, const std::optional<MeasuredSeries>& measured) {
    Study& study = sweep_.study();
    observer_.table_begins(head_of(study, queries, measured ? &*measured : nullptr));
    Answers answers = ask_table(
        queries, [&](const Query& query) { return sweep_.ask(query, progress_); },
        observer_.answered);
    take_links_of_best(queries, answers);
    observer_.table_ends(answers);
    return answers;
  }

  /// Of the largest messages links are known (SweepOptions::keep_details); but these may have no
  /// answer.
  void take_links_of_best(const std::vector<Query>& queries, Answers& answers) {
    const Outcome* const best = answers.best();
    const auto largest = std::ranges::max_element(queries, {}, &Query::size_bytes);
    const bool may_lack = best != nullptr && best->query.size_bytes < largest->size_bytes;
    if (options_.keep_details || !may_lack) return;
    Outcome again = sweep_.study().ask(best->query);
    const auto place = best - answers.outcomes.data();
    if (again.ran()) answers.outcomes[place].report.simulated = std::move(again.report.simulated);
  }

  /// Runs the fastest (or the named) algorithm of a table with real data.
  Answers execute(const ScenarioExecution& execution, const Outcome& best) {
    const Executor& executor = executors_.at(execution.backend);
    Query query = best.query;
    if (!execution.algorithm.empty()) query.algorithm = execution.algorithm;
    query.size_bytes = execution.size_bytes;
    query.judge = false;
    query.run.iterations = kIterations;
    query.run.warmup = kWarmup;
    observer_.execution_begins(query);
    Answers answers;
    if (executor.backend) {
      Study study(*executor.backend, simulator_.get());
      const auto ask = [&](const Query& one) { return study.ask(one); };
      answers = execute_table({query}, ask, observer_.executed);
    } else {
      Outcome nowhere;
      nowhere.query = query;
      nowhere.ranks = best.ranks;
      nowhere.skipped = executor.unavailable;
      answers.add(std::move(nowhere));
    }
    observer_.execution_ends(answers);
    return answers;
  }

  /// They are most of what a large sweep would hold in memory.
  void drop_details(RunReport& report) const {
    if (options_.keep_details || !report.simulated) return;
    report.simulated->links = {};
    report.simulated->critical_path = {};
  }

  const SweepOptions& options_;
  const ScenarioObserver& observer_;
  const SweepProgress progress_{observer_.waiting, observer_.received};
  std::unique_ptr<Backend> simulator_;
  ScenarioSweep sweep_;  ///< makes its workers before there are back ends with threads
  Executors executors_;
};

}  // namespace

TableHead head_of(Study& study, const std::vector<Query>& queries, const MeasuredSeries* measured) {
  return {queries, study.ranks(queries.front()), widest_label(study, queries), measured,
          table_profile(study, queries)};
}

void ScenarioResults::add(TrainingAnswers more) {
  std::ranges::move(more.outcomes, std::back_inserter(trained));
  for (const Skipped& one : more.skipped) answers.add(one);
}

void ScenarioResults::add(ScenarioResults more) {
  answers.add(std::move(more.answers));
  std::ranges::move(more.trained, std::back_inserter(trained));
  std::ranges::move(more.judged, std::back_inserter(judged));
  std::ranges::move(more.validated, std::back_inserter(validated));
  for (const Diagnostic& one : more.unanswered.all()) unanswered.add(one);
}

bool ScenarioResults::all_right() const {
  return answers.all_right() && std::ranges::all_of(judged, &Judged::as_expected);
}

ShardResults answer_shard(const std::vector<Scenario>& scenarios, const ScenarioBackends& backends,
                          const SweepOptions& options, const ScenarioObserver& observer) {
  const std::unique_ptr<Backend> simulator = backends.make_simulator();
  ScenarioSweep sweep(scenarios, *simulator, options);
  begin(sweep, observer);
  sweep.answer_shard({observer.waiting, observer.received});
  return {sweep.questions(), sweep.left_to_others()};
}

ScenarioResults run_scenarios(const std::vector<Scenario>& scenarios,
                              const ScenarioBackends& backends, const SweepOptions& options,
                              const ScenarioObserver& observer) {
  Runner runner(scenarios, backends, options, observer);
  ScenarioResults all;
  for (const Scenario& scenario : scenarios) all.add(runner.run(scenario));
  return all;
}

}  // namespace espalier
