// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "algorithms/program_file.h"
#include "cli/sim_table.h"
#include "cli/sweep.h"
#include "cli/text.h"
#include "cli/verb.h"
#include "core/units.h"
#include "core/words.h"
#include "report/outcomes.h"
#include "scenarios/chooser.h"
#include "scenarios/tuner.h"
#include "sim/simulator.h"

namespace espalier {

namespace {

/// A name stands for all its variants, a name with parameters for itself.
std::vector<std::string> read_candidates(Arguments& arguments, const Sweep& sweep) {
  std::vector<std::string> candidates;
  for (const std::string& word : sweep.algorithms) {
    if (is_chooser(word)) {
      arguments.problem_of("--algorithm", fmt::format("{} is not an algorithm to choose", word));
      continue;
    }
    const Algorithm* algorithm = find_algorithm(word);
    const std::vector<std::string> more =
        algorithm != nullptr ? variants(*algorithm) : std::vector{word};
    for (const std::string& one : more) {
      if (std::ranges::count(candidates, one) == 0) candidates.push_back(one);
    }
  }
  return candidates;
}

Tuning tune_with_progress(const Console& console, Study& study, const Sweep& sweep,
                          const std::vector<std::string>& candidates) {
  Progress progress(console, candidates.size() + sweep.sizes.size());
  return tune(study, sweep.question, sweep.sizes, candidates,
              [&](const std::string& what) { progress.step(what); });
}

/// The choices as questions: what they promise is verified, simulated again and judged.
std::vector<Query> chosen_queries(const Query& question, const Tuning& tuning) {
  std::vector<Query> queries;
  for (const TuningRow& choice : tuning.choices) {
    Query& query = queries.emplace_back(question);
    query.size_bytes = choice.up_to_bytes;
    query.algorithm = choice.algorithm;
    query.chunk_bytes = choice.chunk_bytes;
  }
  return queries;
}

void print_front(const Console& console, const Tuning& tuning) {
  const std::string legend = fmt::format(
      "Latency is the time of {}, bandwidth the algbw of {}; * marks those that no other one beats "
      "in both",
      describe_size(tuning.choices.front().up_to_bytes),
      describe_size(tuning.choices.back().up_to_bytes));
  console.out << "#\n" << wrap(legend, console.width, "# ");
  Columns columns("lrrl");
  columns.add({"algorithm", "latency(us)", "bandwidth(GB/s)", ""});
  for (const FrontPoint& point : tuning.front) {
    columns.add({point.algorithm, fit_number(point.latency_s * 1e6, 7),
                 fit_number(point.algbw_gbps, 6), point.on_front ? "*" : ""});
  }
  console.out << columns.render("#   ");
  for (const auto& [algorithm, reason] : tuning.skipped) {
    console.out << wrap(fmt::format("Not possible here: {}: {}", algorithm, reason), console.width,
                        "# ");
  }
}

/// What is wrong with programs in files is said; they are no candidates.
void refuse_wrong(const Console& console, Study& study, const Sweep& sweep,
                  std::vector<std::string>& candidates, Answers& answers) {
  std::erase_if(candidates, [&](const std::string& candidate) {
    if (!is_program_file(candidate)) return false;
    Query query = sweep.question;
    query.algorithm = candidate;
    query.size_bytes = sweep.sizes.front();
    const Outcome outcome = study.ask(query);
    for (const Diagnostic& problem : outcome.problems) say(console, render(problem));
    if (!outcome.problems.empty()) answers.add(outcome);
    return !outcome.problems.empty();
  });
}

/// Program files are named as whoever reads the table has to look for them.
std::string table_text(TuningTable table, const std::string& output) {
  const std::string folder =
      output == "-" ? "" : std::filesystem::path(output).parent_path().string();
  for (TuningRow& row : table.rows) row.algorithm = as_seen_from(folder, row.algorithm);
  return print_tuning(table);
}

int run_tune(Arguments& arguments, const Console& console) {
  const Sweep sweep = read_sweep(arguments);
  std::vector<std::string> candidates = read_candidates(arguments, sweep);
  const std::string output = arguments.output("--output");
  const std::string json = arguments.output("--json");
  arguments.finish();

  Simulator simulator;
  Study study(simulator, &simulator);
  Answers answers;
  refuse_wrong(console, study, sweep, candidates, answers);
  if (candidates.empty()) return conclude(answers, false);
  const Tuning tuning = tune_with_progress(console, study, sweep, candidates);
  const bool print = output != "-" && json != "-";
  answers.add(simulate_table(console, study, chosen_queries(sweep.question, tuning), print));
  if (print) print_front(console, tuning);
  if (!output.empty()) write_output(console, output, table_text(tuning.table, output));
  if (!json.empty()) write_output(console, json, tuning_json(tuning, answers.outcomes));
  return conclude(answers, false);
}

}  // namespace

const Verb& tune_verb() {
  static const Verb verb = {
      "tune",
      "find the fastest algorithm and chunk size for every message size",
      "Simulates the algorithms, each with several values of its parameters, and shows which one "
      "to use for which size, and which are good for small messages, for large messages or for "
      "both. "
      "--output writes the choices as a table for `--algorithm tuned:FILE` in `sim`, `exec` and "
      "scenarios; `--algorithm auto` makes the same choice without a file. docs/tuning.md "
      "describes "
      "the format.",
      {},
      {{"--topology"},
       {"--collective", "allreduce"},
       {"--root", "0"},
       {"--algorithm", "all"},
       {"--gpus", "all"},
       {"--relay"},
       {"--size", "1KiB..1GiB"},
       {"--chunk", "auto"},
       {"--profile", "kernel"},
       {"--links", "all"},
       {"--in-place"},
       {"--output"},
       {"--json"}},
      {{"tune --topology dgx1-v100 --output dgx1.yaml",
        "a table for allreduce on a DGX-1, to be used with --algorithm tuned:dgx1.yaml"},
       {"tune --topology kesch --collective broadcast --gpus 0-7 --algorithm knomial chain",
        "choose among variants of two algorithms"}},
      run_tune};
  return verb;
}

}  // namespace espalier
