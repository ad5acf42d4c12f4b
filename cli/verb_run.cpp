// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "backends.h"
#include "cli/arguments.h"
#include "cli/paging.h"
#include "cli/process.h"
#include "cli/scenario_console.h"
#include "cli/sweep.h"
#include "cli/verb.h"
#include "core/file.h"
#include "core/words.h"
#include "report/expectations.h"
#include "report/results.h"
#include "report/validation.h"
#include "sim/simulator.h"

namespace espalier {

namespace {

/// More parts than this are a typing error.
constexpr std::size_t kMaxShards = 1'000'000;

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
    std::error_code problem;
    for (fs::directory_iterator entry(word, problem); !problem && entry != fs::end(entry);
         entry.increment(problem)) {
      if (entry->path().extension() == ".yaml") paths.push_back(entry->path().string());
    }
    if (problem) {
      arguments.problem(
          fmt::format("can't read the folder {}: {}", quote(word), problem.message()));
      return files;
    }
    std::ranges::sort(paths);
    for (const std::string& path : paths) {
      ScenarioFile file{path, read_file(path)};
      const std::string other = other_schema(file.yaml);
      if (other.empty()) {
        files.push_back(std::move(file));
      } else {
        say(console, fmt::format("skipped {}, whose schema is {}", quote(path), other));
      }
    }
    if (files.empty()) arguments.problem(fmt::format("no scenario in {}", quote(word)));
    return files;
  }
  const auto& scenarios = builtin_scenarios();
  const auto known = std::ranges::find(scenarios, word, &ScenarioEntry::name);
  if (known != scenarios.end()) return {{word, known->yaml}};
  if (word.ends_with(".esp")) {
    arguments.problem(fmt::format("{} is a program, not a scenario", quote(word)),
                      fmt::format("sim, exec and verify take programs: --algorithm {}", word));
    return files;
  }
  const bool is_there = fs::exists(fs::symlink_status(word, ignored));
  if (word == "-" || is_there) return {{word, read_file(word)}};
  arguments.problem(fmt::format("there is no scenario, file or folder {}", quote(word)),
                    did_you_mean(word, words_of(WordKind::scenario)));
  return files;
}

/// The file of --resume.
std::string read_journal_name(Arguments& arguments) {
  if (arguments.text("--resume") != "-") return arguments.output("--resume");
  arguments.problem_of("--resume",
                       "answers are kept in a file that can be read again, not on standard output");
  return {};
}

/// "2/8", counted from 1; none: all in one.
std::optional<Shard> read_shard(Arguments& arguments, const std::string& journal) {
  if (!arguments.given("--shard")) return std::nullopt;
  const std::string text = arguments.text("--shard");
  std::size_t number = 0;
  std::size_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [slash, first_error] = std::from_chars(text.data(), end, number);
  bool is_read = first_error == std::errc() && slash != end && *slash == '/';
  if (is_read) {
    const auto [last, second_error] = std::from_chars(slash + 1, end, count);
    is_read = second_error == std::errc() && last == end;
  }
  if (!is_read || number < 1 || number > count || count > kMaxShards) {
    arguments.problem_of("--shard", fmt::format("{} is no part of a whole", quote(text)),
                         fmt::format("1/4 to 4/4 are the parts of four; up to {}", kMaxShards));
    return std::nullopt;
  }
  if (journal.empty()) {
    arguments.problem_of("--shard", "there is nowhere to keep its answers",
                         fmt::format("--resume answers.{}.jsonl", number));
  }
  return Shard{number - 1, count};
}

/// Prints what became of it, to whoever waits for the shards.
int run_shard(const std::vector<Scenario>& scenarios, const SweepOptions& options,
              const Console& console) {
  ScenarioConsole shown(console, {.print = false});
  const ShardResults results =
      answer_shard(scenarios, scenario_backends(), options, shown.observer());
  say(console, fmt::format("{} of {} questions are answered in {}; {} are left to other shards",
                           results.questions - results.left, results.questions, options.journal,
                           results.left));
  return 0;
}

/// All of them, read before the first one runs: a mistake shows at once.
std::vector<Scenario> read_scenarios(const std::vector<ScenarioFile>& files) {
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
  return scenarios;
}

/// What Ctrl-C says: how to go on.
std::string farewell(const Arguments& arguments, const std::string& journal) {
  if (journal.empty()) {
    return fmt::format(
        "interrupted; nothing was kept. To be able to go on, next time:\n  {} run {} "
        "--resume answers.jsonl",
        program_name(), arguments.command_line());
  }
  return fmt::format("interrupted; the same command goes on where it was:\n  {} run {}",
                     program_name(), arguments.command_line());
}

int run_run(Arguments& arguments, const Console& console) {
  keep_freed_memory();
  const std::string json = arguments.output("--json");
  const std::string csv = arguments.output("--csv");
  const std::string claims = arguments.output("--claims");
  const std::string validation = arguments.output("--validation");
  const std::string html = arguments.output("--html");
  SweepOptions sweep;
  sweep.jobs = read_jobs(arguments);
  sweep.budget_s = read_budget_s(arguments);
  sweep.journal = read_journal_name(arguments);
  sweep.merged = arguments.words("--merge");
  const std::optional<Shard> shard = read_shard(arguments, sweep.journal);
  if (shard) {
    sweep.shard = *shard;
    for (const char* output : {"--json", "--csv", "--claims", "--validation", "--html"}) {
      if (!arguments.given(output)) continue;
      arguments.problem_of(output, "one shard has no results of its own",
                           "run all shards and then the whole with --merge");
    }
  }
  sweep.keep_details = !json.empty();
  ScenarioView view;
  view.print = arguments.prints_text();
  view.links = static_cast<int>(arguments.integer("--show-links", 0, 1'000'000));
  std::vector<ScenarioFile> files;
  for (const std::string& word : arguments.positionals()) {
    for (ScenarioFile& file : find_scenarios(arguments, console, word)) {
      files.push_back(std::move(file));
    }
  }
  arguments.finish();
  const std::vector<Scenario> scenarios = read_scenarios(files);
  arguments.check_outputs();
  arguments.finish();

  const Farewell on_interrupt(farewell(arguments, sweep.journal));
  if (shard) return run_shard(scenarios, sweep, console);
  ScenarioConsole shown(console, view);
  const ScenarioResults results =
      run_scenarios(scenarios, scenario_backends(), sweep, shown.observer());
  if (!json.empty()) write_output(console, json, results_json(results));
  if (!csv.empty()) write_output(console, csv, results_csv(results));
  if (!claims.empty()) write_output(console, claims, claims_markdown(results.judged));
  if (!validation.empty()) {
    write_output(console, validation, validation_markdown(results.validated));
  }
  if (!html.empty()) {
    Simulator simulator;
    Study study(simulator, &simulator);
    write_page(console, html, page_of(arguments, study, results));
  }
  if (!results.all_right()) return 1;
  results.unanswered.throw_if_any(ErrorKind::unsupported);
  return 0;
}

}  // namespace

const Verb& run_verb() {
  static const Verb verb = {
      "run",
      "run studies: scenario files, built-in ones by name, or a folder of them",
      "A scenario asks any number of the questions that `sim` answers. It can state what it "
      "expects of "
      "the answers, and can execute the best algorithm with real data. docs/scenarios.md describes "
      "the "
      "format. The exit code is 1 if an expectation is not met. Worker processes find the answers; "
      "with --resume, an interrupted run continues where it stopped.",
      {"SCENARIO...", "files, folders or names from `espalier list scenarios`", WordKind::scenario,
       1, 1'000'000},
      {{"--jobs", "0"},
       {"--budget"},
       {"--resume"},
       {"--shard"},
       {"--merge"},
       {"--show-links", "16"},
       {"--json"},
       {"--csv"},
       {"--claims"},
       {"--validation"},
       {"--html"}},
      {{"run quickstart", "the tour: which allreduce is best on a DGX-1"},
       {"run my_study.yaml --json reports.json", "a study of your own"},
       {"run my_sweep.yaml --resume sweep.jsonl",
        "a long study that can be interrupted and resumed"},
       {"run my_sweep.yaml --shard 2/8 --resume answers.2.jsonl",
        "the second of eight parts, each on a computer of its own"},
       {"run my_sweep.yaml --merge answers.*.jsonl", "and the tables of all parts"}},
      run_run};
  return verb;
}

}  // namespace espalier
