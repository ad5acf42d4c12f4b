// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <set>

#include "algorithms/program_file.h"
#include "cli/paging.h"
#include "cli/process.h"
#include "cli/sim_table.h"
#include "cli/sweep.h"
#include "cli/table_notes.h"
#include "cli/text.h"
#include "cli/tune_files.h"
#include "cli/verb.h"
#include "core/units.h"
#include "core/words.h"
#include "formats/nccl_tuner.h"
#include "report/outcomes.h"
#include "report/results.h"
#include "scenarios/asked_table.h"
#include "scenarios/baseline.h"
#include "scenarios/chooser.h"
#include "scenarios/tuner.h"
#include "scenarios/turns.h"
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
    for (const std::string& one : variants_of(word)) {
      if (std::ranges::count(candidates, one) == 0) candidates.push_back(one);
    }
  }
  return candidates;
}

Tuning tune_with_progress(const Console& console, Study& study, StudyWorkers& workers,
                          const Sweep& sweep, const std::vector<std::string>& candidates) {
  const std::size_t at_ends = 2 * candidates.size();
  Progress progress(console, at_ends + sweep.sizes.size());
  std::size_t predicted = 0;
  const SweepProgress shown = {[&](std::string_view label) { progress.resume(label); },
                               [&](std::string_view label) {
                                 if (++predicted <= at_ends) progress.step(label);
                               }};
  const TimeLimit limit(kTimeToCompare * time_left_s());
  const PredictAll predict_all =
      std::isfinite(time_left_s())
          ? predict_in_turns(study, candidates.size(), sweep.sizes.size(), shown)
          : predict_with(workers, shown);
  return tune(study, sweep.question, sweep.sizes, candidates, predict_all,
              [&](std::int64_t size_bytes) { progress.step(format_bytes(size_bytes)); });
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
  if (!tuning.unasked.empty()) {
    console.out << wrap(
        fmt::format("Not asked, as there was no time left: {}", join(tuning.unasked, ", ")),
        console.width, "# ");
  }
  for (const auto& [algorithm, reason] : tuning.skipped) {
    console.out << wrap(fmt::format("Not possible here: {}: {}", algorithm, reason), console.width,
                        "# ");
  }
}

/// For which sizes nothing is faster than NCCL by more than the expected errors.
void print_kept(const Console& console, const std::vector<Outcome>& outcomes) {
  std::vector<std::string> kept;
  const auto keeps = [](const Outcome& one) { return keeps_library(one) ? "keep" : ""; };
  for (const SizeStretch& one : size_stretches(outcomes, keeps)) kept.push_back(one.sizes);
  if (kept.empty()) return;
  console.out << wrap(fmt::format("Keep NCCL for {}: nothing is faster by more than both errors "
                                  "combined",
                                  join(kept, ", ")),
                      console.width, "# ");
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

/// For which of the sizes of a row NCCL is to be kept.
std::string remark_of(const TuningTable& table, const TuningRow& row,
                      const std::vector<Outcome>& outcomes) {
  if (!is_program_file(row.algorithm) && is_library(parse_algorithm(row.algorithm))) return {};
  std::vector<std::int64_t> kept;
  std::set<std::int64_t> all;
  for (const Outcome& outcome : outcomes) {
    const std::int64_t size_bytes = outcome.query.size_bytes;
    all.insert(size_bytes);
    if (&table.row_for(size_bytes) == &row && keeps_library(outcome)) kept.push_back(size_bytes);
  }
  if (kept.empty()) return {};
  return fmt::format("keep NCCL for {}: this is faster by no more than both errors combined",
                     join_sizes(kept, all));
}

/// Program files are named as whoever reads the table has to look for them.
std::string table_text(TuningTable table, const std::vector<Outcome>& outcomes,
                       const std::string& output) {
  const std::string folder =
      output == "-" ? "" : std::filesystem::path(output).parent_path().string();
  std::vector<std::string> remarks;
  for (TuningRow& row : table.rows) {
    remarks.push_back(remark_of(table, row, outcomes));
    row.algorithm = as_seen_from(folder, row.algorithm);
  }
  return print_tuning(table, remarks);
}

/// --export is a folder here, for as many programs as there are rows; --to says in which format.
ExportTarget read_folder(Arguments& arguments) {
  const std::string folder = arguments.text("--export");
  if (!folder.empty() && arguments.text("--to").empty()) {
    arguments.problem("--export writes several programs into a folder, in the format of --to",
                      "--to msccl-xml, mscclpp-json or esp");
    return {};
  }
  if (folder.empty()) return read_export(arguments);
  std::error_code ignored;
  if (std::filesystem::exists(folder, ignored) && !std::filesystem::is_directory(folder, ignored)) {
    arguments.problem_of("--export", fmt::format("{} is no folder", quote(folder)));
  }
  ExportTarget target = export_target(arguments, folder, Exported::program);
  read_instances(arguments, target);
  return target;
}

int run_tune(Arguments& arguments, const Console& console) {
  keep_freed_memory();
  Sweep sweep = read_sweep(arguments);
  std::vector<std::string> candidates = read_candidates(arguments, sweep);
  const std::string output = arguments.output("--output");
  const std::string json = arguments.output("--json");
  const std::string csv = arguments.output("--csv");
  const std::string html = arguments.output("--html");
  const TunerFormat format = read_tuner_format(arguments);
  if (format.is_csv && output.empty()) {
    arguments.problem_of("--format", "there is no --output to be written in it",
                         "--output tuner.conf");
  }
  const ExportTarget folder = read_folder(arguments);
  const int jobs = read_jobs(arguments);
  const TimeLimit limit(read_budget_s(arguments));
  arguments.finish();
  // Nobody looks at single links or ops of the choices.
  sweep.question.only_times = json.empty() && html.empty() && folder.path.empty() && !format.is_csv;

  Simulator simulator;
  Study study(simulator, &simulator);
  Answers answers;
  if (format.is_csv) {
    if (!arguments.given("--profile")) sweep.question.profile = "nccl";
    keep_nccl(study, sweep.question, sweep.all_algorithms, format, candidates);
  }
  refuse_wrong(console, study, sweep, candidates, answers);
  if (candidates.empty()) return conclude(answers, false);
  study.machine(sweep.question);  // which the workers then know
  StudyWorkers workers(study, simulator, useful_workers(jobs, 2 * candidates.size()));
  const Tuning tuning = tune_with_progress(console, study, workers, sweep, candidates);
  const bool print = arguments.prints_text();
  answers.add(simulate_table(console, study, workers, chosen_queries(sweep.question, tuning), print,
                             LateQuestions::asked));
  if (print) {
    print_kept(console, answers.outcomes);
    print_front(console, tuning);
  }
  if (!output.empty() && format.is_csv) {
    write_output(console, output,
                 choices_csv(answers.outcomes, study.machine(sweep.question), format));
  } else if (!output.empty()) {
    write_output(console, output, table_text(tuning.table, answers.outcomes, output));
  }
  if (!folder.path.empty()) {
    export_choices(console, folder, study, tuning, answers.outcomes);
  }
  if (!json.empty()) write_output(console, json, tuning_json(tuning, answers.outcomes));
  if (!csv.empty()) write_output(console, csv, answers_csv(answers));
  if (!html.empty()) write_page(console, html, page_of(arguments, study, answers, tuning));
  return conclude(answers, false);
}

}  // namespace

const Verb& tune_verb() {
  static const Verb verb = {
      "tune",
      "find the fastest algorithm and chunk size for every message size",
      "Simulates the algorithms, each with several values of its parameters, and shows which one "
      "to use for which size, and which are good for small messages, for large messages or for "
      "both; and for which sizes to keep NCCL, because nothing is faster by more than both "
      "expected errors combined. "
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
       {"--launch", "per_gpu"},
       {"--no-nccl"},
       {"--links", "all"},
       {"--jobs", "0"},
       {"--in-place"},
       {"--budget"},
       {"--output"},
       {"--format", "yaml"},
       {"--export"},
       {"--to"},
       {"--instances", "auto"},
       {"--json"},
       {"--csv"},
       {"--html"}},
      {{"tune --topology dgx-h100 --format nccl-csv --output tuner.conf",
        "the best of what NCCL has, for its example tuner plugin"},
       {"tune --topology dgx-a100 --links fabric --export plans --to mscclpp-json",
        "a folder of plans for MSCCL++, and a list that says which is for which sizes"},
       {"tune --topology dgx1-v100 --output dgx1.yaml",
        "a table for allreduce on a DGX-1, to be used with --algorithm tuned:dgx1.yaml"},
       {"tune --topology kesch --collective broadcast --gpus 0-7 --algorithm knomial chain",
        "choose among variants of two algorithms"}},
      run_tune};
  return verb;
}

}  // namespace espalier
