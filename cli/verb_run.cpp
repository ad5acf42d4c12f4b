// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/exec_table.h"
#include "cli/expectations.h"
#include "cli/report.h"
#include "cli/scenario_sweep.h"
#include "cli/sim_table.h"
#include "cli/text.h"
#include "cli/training_table.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "exec/host/host_backend.h"
#include "scenarios/scenario.h"
#include "sim/simulator.h"

namespace espalier {

namespace {

/// Timed and untimed runs of a scenario's execution: it is a check more than a measurement.
constexpr int kIterations = 5;
constexpr int kWarmup = 1;

struct ScenarioFile {
  std::string name;  ///< its path, or a built-in name
  std::string yaml;
};

/// A path, a folder's scenarios in order of their names, or a built-in scenario.
std::vector<ScenarioFile> find_scenarios(Arguments& arguments, const Console& console,
                                         const std::string& word) {
  namespace fs = std::filesystem;
  std::vector<ScenarioFile> files;
  std::error_code ignored;
  if (fs::is_directory(word, ignored)) {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(word)) {
      if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
    }
    std::ranges::sort(paths);
    for (const std::string& path : paths) {
      ScenarioFile file{path, read_file(path)};
      const std::string other = other_schema(file.yaml);
      if (other.empty()) {
        files.push_back(std::move(file));
      } else {
        say(console, fmt::format("skipped {}, which is of schema {}", quote(path), other));
      }
    }
    if (files.empty()) arguments.problem(fmt::format("no scenario in {}", quote(word)));
    return files;
  }
  const auto& scenarios = builtin_scenarios();
  const auto known = std::ranges::find(scenarios, word, &ScenarioEntry::name);
  if (known != scenarios.end()) return {{word, known->yaml}};
  if (word == "-" || fs::exists(word, ignored)) return {{word, read_file(word)}};
  arguments.problem(fmt::format("there is no scenario, file or folder {}", quote(word)),
                    did_you_mean(word, words_of(WordKind::scenario)));
  return files;
}

struct Options {
  bool print = true;
  bool keep_details = false;  ///< links and critical paths of all outcomes, for reports
  int shown_links = 0;
};

/// A headline, in bold where there are colours.
void print_title(const Console& console, std::string_view mark, std::string_view title,
                 const std::string& note) {
  console.out << styled(console, Style::bold, fmt::format("# {} {}", mark, title)) << '\n';
  if (!note.empty()) console.out << wrap(trim(note), console.width, "#   ");
  console.out << std::flush;  // it shows what a long run is at
}

/// Runs the fastest (or the named) algorithm of a table with real data.
void execute(const Console& console, const ScenarioExecution& execution, const Outcome& best,
             bool print, Answers& answers) {
  HostBackend host;
  Simulator simulator;
  Study study(host, &simulator);
  Query query = best.query;
  if (!execution.algorithm.empty()) query.algorithm = execution.algorithm;
  query.size_bytes = execution.size_bytes;
  query.judge = false;
  query.run.iterations = kIterations;
  query.run.warmup = kWarmup;
  if (print) console.out << "#\n";
  execute_table(console, study, {query}, print, answers);
}

/// What has become of the scenarios so far.
struct Results {
  Answers answers;
  std::vector<TrainingOutcome> trained;
  std::vector<Judged> judged;
  DiagnosticList unanswered;  ///< why no algorithm applied to a table

  void add(TrainingAnswers more) {
    std::ranges::move(more.outcomes, std::back_inserter(trained));
    answers.add(std::move(more.refused));
  }
  void add(Results more) {
    answers.add(std::move(more.answers));
    std::ranges::move(more.trained, std::back_inserter(trained));
    std::ranges::move(more.judged, std::back_inserter(judged));
    for (const Diagnostic& one : more.unanswered.all()) unanswered.add(one);
  }
};

/// Shows scenarios one after the other, as their answers come in.
class ScenarioRunner {
 public:
  ScenarioRunner(const Console& console, const Options& options, ScenarioSweep& sweep)
      : console_(console),
        options_(options),
        sweep_(sweep),
        progress_(console, sweep.questions(), sweep.known()) {}

  Results run(const Scenario& scenario);

 private:
  std::vector<Judged> ask(const Scenario& scenario, const ScenarioBlock& block,
                          const CollectiveStudy& study, Results& results);
  std::vector<Judged> ask(const Scenario& scenario, const ScenarioBlock& block,
                          const TrainingStudy& study, Results& results);
  Answers show_best(const CollectiveStudy& study, const Outcome& best);
  void drop_details(RunReport& report) const;

  const Console& console_;
  const Options& options_;
  ScenarioSweep& sweep_;
  Progress progress_;
};

/// No algorithm applied to a table. Tables may have the same to say.
void note_unanswered(const ScenarioBlock& block, const std::string& topology,
                     const Answers& answers, DiagnosticList& unanswered) {
  if (!answers.broken.empty()) return;
  for (const Skipped& one : answers.skipped) {
    std::string message = fmt::format("{}: {} is not possible on {}: {}", quote(block.title),
                                      one.algorithm, topology, one.reason);
    if (std::ranges::count(unanswered.all(), message, &Diagnostic::message) > 0) continue;
    unanswered.add({}, std::move(message), one.instead);
  }
}

/// They are most of what a large sweep would hold in memory.
void ScenarioRunner::drop_details(RunReport& report) const {
  if (options_.keep_details) return;
  if (!report.simulated) return;
  report.simulated->links = {};
  report.simulated->critical_path = {};
}

/// The links of the best answer, and what it does with real data.
Answers ScenarioRunner::show_best(const CollectiveStudy& study, const Outcome& best) {
  if (options_.print && options_.shown_links > 0) {
    print_links(console_, best, options_.shown_links);
  }
  Answers executed;
  if (study.execute) execute(console_, *study.execute, best, options_.print, executed);
  return executed;
}

std::vector<Judged> ScenarioRunner::ask(const Scenario& scenario, const ScenarioBlock& block,
                                        const CollectiveStudy& study, Results& results) {
  std::vector<Answers> tables;
  std::vector<Answers> executed;
  for (const std::vector<Query>& queries : study.tables) {
    Answers& answers = tables.emplace_back();
    if (options_.print) console_.out << "#\n";
    const auto ask = [&](const Query& query) { return sweep_.ask(query, progress_); };
    simulate_table(console_, sweep_.study(), queries, {ask, progress_}, options_.print, answers);
    const Outcome* best = answers.best();
    executed.push_back(best != nullptr ? show_best(study, *best) : Answers{});
    if (best == nullptr)
      note_unanswered(block, queries.front().topology, answers, results.unanswered);
  }
  std::vector<Judged> judged = judge_block(scenario.name, block, tables);
  for (std::size_t table = 0; table < tables.size(); ++table) {
    for (Outcome& outcome : tables[table].outcomes) drop_details(outcome.report);
    tables[table].label({scenario.name, block.title});
    executed[table].label({scenario.name, block.title});
    results.answers.add(std::move(tables[table]));
    results.answers.add(std::move(executed[table]));
  }
  return judged;
}

std::vector<Judged> ScenarioRunner::ask(const Scenario& scenario, const ScenarioBlock& block,
                                        const TrainingStudy& study, Results& results) {
  std::vector<TrainingAnswers> tables;
  for (const TrainingSweep& sweep : study.tables) {
    if (options_.print) console_.out << "#\n";
    const auto ask = [&](const TrainingQuery& query) { return sweep_.train(query, progress_); };
    tables.push_back(train_table(console_, sweep, {ask, progress_}, options_.print));
    const TrainingAnswers& answers = tables.back();
    if (answers.outcomes.empty()) {
      note_unanswered(block, sweep.question.exchange.topology, answers.refused, results.unanswered);
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

Results ScenarioRunner::run(const Scenario& scenario) {
  Results results;
  for (const ScenarioBlock& block : scenario.blocks) {
    if (options_.print) print_title(console_, "---", block.title, block.note);
    std::vector<Judged> judged = std::visit(
        [&](const auto& study) { return ask(scenario, block, study, results); }, block.study);
    if (options_.print) {
      const auto* study = std::get_if<CollectiveStudy>(&block.study);
      const bool executes = study != nullptr && study->execute;
      if (!executes || !judged.empty()) console_.out << "#\n";
      print_judged(console_, judged);
      if (!judged.empty()) console_.out << "#\n" << std::flush;
    }
    std::ranges::move(judged, std::back_inserter(results.judged));
  }
  return results;
}

void print_summary(const Console& console, const Scenario& scenario, const Results& results) {
  const Answers& answers = results.answers;
  std::size_t simulated = results.trained.size();
  std::size_t executed = 0;
  std::int64_t wrong = 0;
  for (const Outcome& outcome : answers.outcomes) {
    (outcome.report.executed ? executed : simulated) += 1;
    wrong += outcome.report.wrong_elements();
  }
  console.out << fmt::format("# {}: {} verified and simulated", scenario.name,
                             counted(simulated, "program"));
  if (executed > 0) {
    console.out << fmt::format(", {} executed with {} wrong elements", executed, wrong);
  }
  if (!answers.broken.empty()) {
    console.out << fmt::format("; refused by the verifier: {}", join(answers.broken, ", "));
  }
  if (!results.judged.empty()) {
    console.out << fmt::format("; {} of {} as expected",
                               std::ranges::count_if(results.judged, &Judged::as_expected),
                               counted(results.judged.size(), "expectation"));
  }
  console.out << '\n';
}

std::string results_json(const Results& results) {
  Json all = reports_array(results.answers.outcomes);
  for (const TrainingOutcome& outcome : results.trained) all.push_back(training_json(outcome));
  for (const Skipped& one : results.answers.skipped) all.push_back(skipped_json(one));
  for (const Judged& one : results.judged) all.push_back(judged_json(one));
  return dump_one_or_array(all);
}

/// Collectives, then training, then what was skipped: columns that several have are one.
std::string results_csv(const Results& results) {
  std::vector<std::string> columns;
  std::vector<Json> rows;
  if (results.trained.empty() || !results.answers.outcomes.empty()) columns = report_columns();
  for (const Outcome& outcome : results.answers.outcomes) rows.push_back(report_row(outcome));
  if (!results.trained.empty()) {
    for (const std::string& column : training_columns()) {
      if (std::ranges::count(columns, column) == 0) columns.push_back(column);
    }
  }
  for (const TrainingOutcome& outcome : results.trained) rows.push_back(training_row(outcome));
  for (const Skipped& one : results.answers.skipped) rows.push_back(skipped_row(one));
  std::ranges::copy(study_columns(), std::back_inserter(columns));
  return csv_text(columns, rows);
}

/// The file of --resume.
std::string read_journal_name(Arguments& arguments) {
  if (arguments.text("--resume") != "-") return arguments.output("--resume");
  arguments.problem_of("--resume", "answers are kept in a file, which is read again");
  return {};
}

int run_scenarios(Arguments& arguments, const Console& console) {
  const std::string json = arguments.output("--json");
  const std::string csv = arguments.output("--csv");
  const std::string claims = arguments.output("--claims");
  Options options;
  options.print = json != "-" && csv != "-" && claims != "-";
  const int jobs = static_cast<int>(arguments.integer("--jobs", 0, kMaxJobs));
  const std::string journal = read_journal_name(arguments);
  options.keep_details = !json.empty();
  options.shown_links = static_cast<int>(arguments.integer("--show-links", 0, 1'000'000));
  std::vector<ScenarioFile> files;
  for (const std::string& word : arguments.positionals()) {
    for (ScenarioFile& file : find_scenarios(arguments, console, word))
      files.push_back(std::move(file));
  }
  arguments.finish();
  // All of them are read before the first one runs: a mistake shows at once.
  std::vector<Scenario> scenarios;
  DiagnosticList problems;
  for (const ScenarioFile& file : files) {
    try {
      scenarios.push_back(parse_scenario(file.yaml, file.name));
    } catch (const Error& error) {
      for (const Diagnostic& problem : error.diagnostics()) problems.add(problem);
    }
  }
  problems.throw_if_any();

  ScenarioSweep sweep(scenarios, jobs, journal);
  ScenarioRunner runner(console, options, sweep);
  Results all;
  for (const Scenario& scenario : scenarios) {
    if (options.print) {
      print_title(console, "===", fmt::format("{}: {}", scenario.name, scenario.title),
                  scenario.note);
      console.out << "#\n";
    }
    Results results = runner.run(scenario);
    if (options.print) print_summary(console, scenario, results);
    all.add(std::move(results));
  }
  if (!json.empty()) write_output(console, json, results_json(all));
  if (!csv.empty()) write_output(console, csv, results_csv(all));
  if (!claims.empty()) write_output(console, claims, claims_markdown(all.judged));
  if (verdict(all.answers) != 0 || !std::ranges::all_of(all.judged, &Judged::as_expected)) return 1;
  all.unanswered.throw_if_any(ErrorKind::unsupported);
  return 0;
}

}  // namespace

const Verb& run_verb() {
  static const Verb verb = {
      "run",
      "run studies: scenario files, built-in ones by name, or a folder of them",
      "A scenario asks one or many questions of the kind `sim` answers, may say what it expects of "
      "the answers, and may also execute the best one with real data. docs/scenarios.md has the "
      "format. The exit code is 1 when an expectation is not met. Answers are found by worker "
      "processes; with --resume, a run that was interrupted goes on where it was.",
      {"SCENARIO...", "files, folders or names from `espalier list scenarios`", WordKind::scenario,
       1, 1'000'000},
      {{"--jobs", "0"}, {"--resume"}, {"--show-links", "16"}, {"--json"}, {"--csv"}, {"--claims"}},
      {{"run quickstart", "the tour: which allreduce is best on a DGX-1"},
       {"run my_study.yaml --json reports.json", "a study of your own"},
       {"run my_sweep.yaml --resume sweep.jsonl", "a long one, which may be interrupted"}},
      run_scenarios};
  return verb;
}

}  // namespace espalier
