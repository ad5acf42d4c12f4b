// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/exporting.h"
#include "cli/nccl_tests_output.h"
#include "cli/paging.h"
#include "cli/process.h"
#include "cli/programs.h"
#include "cli/sim_table.h"
#include "cli/sweep.h"
#include "cli/trace_output.h"
#include "cli/verb.h"
#include "report/outcomes.h"
#include "report/results.h"
#include "scenarios/asked_table.h"
#include "sim/simulator.h"

namespace espalier {

namespace {

/// What libraries decide about the questions, into the outcomes and, where `text` is not null, as
/// text: also where they can do nothing, and there is no outcome.
void explain(const Console& console, Study& study, const std::vector<Query>& queries,
             std::ostream* text, Answers& answers) {
  bool is_any = false;
  for (const Query& query : queries) {
    const std::vector<std::string> lines = study.explain(query);
    if (lines.empty()) continue;
    is_any = true;
    if (text == nullptr) continue;
    *text << "#\n";
    for (const std::string& line : lines) *text << "# " << line << '\n';
  }
  for (Outcome& outcome : answers.outcomes) outcome.explanation = study.explain(outcome.query);
  if (is_any) return;
  say(console,
      "note: --explain has nothing to explain: none of the algorithms named is a library that "
      "decides by itself, as nccl does");
}

int run_sim(Arguments& arguments, const Console& console) {
  keep_freed_memory();
  const Sweep sweep = read_sweep(arguments);
  const std::string json = arguments.output("--json");
  const std::string csv = arguments.output("--csv");
  const NcclTestsOutput table = read_nccl_tests_output(arguments, sweep);
  const TraceOutput trace = read_trace(arguments);
  const std::string html = arguments.output("--html");
  const std::int64_t shown_links =
      arguments.given("--show-links") ? arguments.integer("--show-links", 1, 1'000'000) : 0;
  const ExportTarget target = read_export(arguments);
  const bool explains = arguments.flag("--explain");
  const bool shows_path = arguments.flag("--critical-path");
  const bool only_times = shown_links == 0 && !shows_path && json.empty() && html.empty();
  const int jobs = read_jobs(arguments);
  const TimeLimit limit(read_budget_s(arguments));
  arguments.finish();

  Simulator simulator;
  Study study(simulator, &simulator);
  const bool print = arguments.prints_text();
  std::vector<Query> queries = sweep.queries();
  for (Query& query : queries) query.only_times = only_times;
  study.machine(queries.front());  // which the workers then know
  StudyWorkers workers(study, simulator, useful_workers(jobs, count_requests(study, queries)));
  const std::size_t most_rows = arguments.given("--algorithm") ? SimTable::kAllRows : kShownBest;
  Answers answers =
      simulate_table(console, study, workers, queries, print, LateQuestions::skipped, most_rows);
  if (explains) {
    std::ostream* const text = print ? &console.out : json == "-" ? nullptr : &console.err;
    explain(console, study, queries, text, answers);
  }
  for (const std::string& note : sizes_not_meant(study, queries)) {
    say(console, "note: " + printable(note));
  }
  if (print) print_not_here(console, answers, sweep.all_algorithms);
  const Outcome* best = answers.best();
  if (print && best != nullptr) {
    if (shown_links > 0) print_links(console, *best, static_cast<int>(shown_links));
    if (shows_path) print_critical_path(console, *best);
  }
  if (!json.empty()) write_output(console, json, answers_json(answers));
  if (!csv.empty()) write_output(console, csv, answers_csv(answers));
  write_nccl_tests(console, arguments, table, study, answers);
  if (!target.path.empty() && best != nullptr) export_outcome(console, target, study, *best);
  if (!trace.path.empty() && best != nullptr) {
    const Outcome again = ask_with_timeline(study, *best, traced_ops(trace.most_ops));
    write_trace(console, trace, trace_of(again, trace.most_ops));
  }
  if (!html.empty() && best != nullptr)
    write_page(console, html, page_of(arguments, study, answers));
  return conclude(answers, sweep.all_algorithms);
}

}  // namespace

const Verb& sim_verb() {
  static const Verb verb = {
      "sim",
      "predict how long a collective takes on a machine",
      "Builds the program of each algorithm, verifies it, and simulates it on the links of the "
      "machine. The table has the columns of nccl-tests, with the fastest algorithm first for "
      "every "
      "size; without --algorithm all are simulated and the five fastest shown, in files all. Time "
      "is "
      "that of one call by itself, +- how far off it is expected to be, and bench what nccl-tests "
      "would print for calls back to back (--launch); vs nccl is the speed relative to NCCL; "
      "%bound compares the least time that the bound for the algorithm's links allows; the proof "
      "of "
      "the bound follows below. The algorithm auto is the fastest one, auto:A|B the faster of two, "
      "and tuned:FILE the choice by size of a table written by `espalier tune`. For a single "
      "algorithm, the average bus bandwidth over the sizes follows, as nccl-tests prints it.",
      {},
      {{"--topology"},
       {"--collective", "allreduce"},
       {"--root", "0"},
       {"--algorithm", "all"},
       {"--gpus", "all"},
       {"--relay"},
       {"--size", "1GiB"},
       {"--chunk", "auto"},
       {"--profile", "kernel"},
       {"--no-merge"},
       {"--launch", "per_gpu"},
       {"--no-nccl"},
       {"--links", "all"},
       {"--engine", "auto"},
       {"--jobs", "0"},
       {"--in-place"},
       {"--budget"},
       {"--json"},
       {"--csv"},
       {"--nccl-tests"},
       {"--trace"},
       {"--trace-ops", "50000"},
       {"--html"},
       {"--export"},
       {"--to"},
       {"--instances", "auto"},
       {"--show-links"},
       {"--critical-path"},
       {"--explain"}},
      {{"sim --topology dgx1-v100", "the five fastest allreduces on a DGX-1, 1 GiB"},
       {"sim --topology dgx1-v100 --gpus 0-5 --size 4KiB..1GiB --algorithm ring",
        "one algorithm on six of its GPUs, from small to large messages"},
       {"sim --topology ring:n=1024,gbps=50 --algorithm ring --profile ideal",
        "a generic machine, without start-up costs"},
       {"sim --topology dgx1-v100 --show-links 8 --trace timeline.json",
        "the busiest links of the fastest algorithm, and its timeline"},
       {"sim --topology dgx1-v100 --size 1KiB..1GiB --html report.html",
        "all of it as a page for a browser"}},
      run_sim};
  return verb;
}

}  // namespace espalier
