// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "cli/sim_table.h"
#include "cli/text.h"
#include "cli/verbs.h"
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
  console.out << fmt::format(
      "#\n# Latency is the time of {}, bandwidth the algbw of {}; * no other is better in both\n",
      describe_size(tuning.choices.front().up_to_bytes),
      describe_size(tuning.choices.back().up_to_bytes));
  Columns columns("lrrl");
  columns.add({"algorithm", "latency(us)", "bandwidth(GB/s)", ""});
  for (const FrontPoint& point : tuning.front) {
    columns.add({point.algorithm, fit_number(point.latency_s * 1e6, 7),
                 fit_number(point.algbw_gbps, 6), point.on_front ? "*" : ""});
  }
  console.out << columns.render("#   ");
  for (const auto& [algorithm, reason] : tuning.skipped) {
    console.out << wrap(fmt::format("Not here: {}: {}", algorithm, reason), console.width, "# ");
  }
}

int run_tune(Arguments& arguments, const Console& console) {
  const Sweep sweep = read_sweep(arguments);
  const std::vector<std::string> candidates = read_candidates(arguments, sweep);
  const std::string output = arguments.output("--output");
  const std::string json = arguments.output("--json");
  arguments.finish();

  Simulator simulator;
  Study study(simulator, &simulator);
  const Tuning tuning = tune_with_progress(console, study, sweep, candidates);
  const bool print = output != "-" && json != "-";
  const Answers answers =
      simulate_table(console, study, chosen_queries(sweep.question, tuning), print);
  if (print) print_front(console, tuning);
  if (!output.empty()) write_output(console, output, print_tuning(tuning.table));
  if (!json.empty()) write_output(console, json, tuning_json(tuning, answers.outcomes));
  return conclude(answers, false);
}

}  // namespace

const Verb& tune_verb() {
  static const Verb verb = {
      "tune",
      "find the fastest algorithm and chunk size for every message size",
      "Simulates the algorithms, each with several values of its parameters, and shows which one "
      "to use for which size, and which are good for small messages, for large ones or for both. "
      "--output writes the choices as a table that `--algorithm tuned:FILE` of `sim`, `exec` and "
      "scenarios uses; `--algorithm auto` makes the same choice without a file. docs/tuning.md has "
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
