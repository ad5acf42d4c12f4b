// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>

#include "cli/compare_measured.h"
#include "cli/compare_table.h"
#include "cli/paging.h"
#include "cli/probing.h"
#include "cli/sweep.h"
#include "cli/table_notes.h"
#include "cli/trace_output.h"
#include "cli/verb.h"
#include "core/file.h"
#include "formats/machine.h"
#include "probe/doubts.h"
#include "report/outcomes.h"
#include "scenarios/describe.h"
#include "scenarios/measured_log.h"
#include "sim/simulator.h"
#include "topologies/load.h"

namespace espalier {

namespace {

/// Both timelines of the fastest run of the largest message, which is run once more for it.
Trace trace_of(Study& predicting, Study& measuring, const Outcome& best, std::size_t most_ops) {
  Query query = best.query;
  query.run.timeline = true;
  query.may_fold = false;
  query.run.iterations = 1;
  return comparison_trace(predicting.ask(query), measuring.ask(query), most_ops);
}

/// Asks both studies, with a progress bar; prints the table when `print`.
Comparisons compare(const Console& console, Study& predicting, Study& measuring,
                    const std::vector<Query>& queries, const std::string& where, bool print) {
  Refusals refusals(console);
  CompareTable table(console, where, head_of(predicting, queries));
  Progress progress(console, 2 * queries.size());
  const auto predict = [&](const Query& query) {
    progress.step("simulated " + progress_label(query));
    return predicting.ask(query);
  };
  const auto measure = [&](const Query& query) {
    progress.step(progress_label(query));
    return measuring.ask(query);
  };
  Comparisons comparisons =
      compare_table(queries, predict, measure, [&](const Outcome& measured, const Comparison* row) {
        progress.erase();
        refusals.add(measured.problems);
        if (print && row != nullptr) table.add(*row);
      });
  if (print) table.finish(comparisons);
  return comparisons;
}

/// Why the named machine may not be this one.
void say_doubts(const Console& console, const std::string& machine, bool is_host,
                const std::vector<int>& devices) {
  for (const std::string& doubt : doubts_about(open_machine(machine), is_host, devices)) {
    say(console, "note: " + doubt);
  }
}

/// Both sides search by themselves.
void refuse_budget(Arguments& arguments) {
  if (!arguments.given("--budget")) return;
  arguments.problem_of("--budget",
                       "what is run has to be what was simulated, and searches that are cut short "
                       "need not end alike",
                       "with --measured nothing is run");
}

/// The fastest run once more, simulated and measured: as a trace, and as a page. The run may fail.
void write_both(const Arguments& arguments, const Console& console, Study& predicting,
                Study& measuring, const Comparisons& comparisons, const std::string& where,
                const TraceOutput& trace) {
  const std::string html = arguments.text("--html");
  const Outcome* best = comparisons.measured.best();
  if (best == nullptr) return;
  if (!trace.path.empty()) {
    write_trace(console, trace, trace_of(predicting, measuring, *best, trace.most_ops));
  }
  if (!html.empty()) {
    std::vector<PagedRun> runs = run_both(predicting, measuring, *best);
    write_page(console, html, page_of(arguments, comparisons, where, std::move(runs)));
  }
}

int run_compare(Arguments& arguments, const Console& given) {
  if (arguments.given("--measured")) return compare_with_log(arguments, given);
  Sweep sweep = read_sweep(arguments);
  const std::string json = arguments.output("--json");
  const std::string csv = arguments.output("--csv");
  const TraceOutput trace = read_trace(arguments);
  arguments.output("--html");
  const std::string output = arguments.output("--output");
  const BackendEntry& entry = read_backend(arguments);
  const std::vector<int> devices = read_devices(arguments, entry);
  count_ranks(arguments, devices, sweep.question);
  if (!output.empty() && !sweep.question.topology.empty()) {
    arguments.problem_of("--output", "nothing is probed if --topology names a machine");
  }
  const bool ranks_named = !devices.empty() || arguments.given("--ranks");
  refuse_budget(arguments);
  arguments.finish();
  count_processes(arguments, entry, sweep.question);
  const Console console = console_for(entry, given);
  say_version(notes_to(console), sweep.question.library_version);

  std::optional<Topology> probed;
  Query& question = sweep.question;
  std::string where = question.topology;
  if (question.topology.empty()) {
    const int ranks = ranks_named ? question.ranks : ranks_to_probe(entry, question.ranks);
    const ProbeRequest request = probe_request_for(entry, devices, ranks, question.run.timeout_s);
    probed = probed_machine(survey_machine(request, console));
    where = probed->title + ", probed just now";
    question.topology = where;
    question.ranks = 0;
    if (!output.empty()) write_output(console, output, print_topology(*probed));
  }
  question.judge = false;
  if (!entry.has_devices) question.against_nccl = false;  // which runs on GPUs
  if (!probed) say_doubts(console, where, !entry.has_devices, devices);

  const std::unique_ptr<Backend> backend = entry.make({devices, !probed.has_value()});
  Simulator simulator;
  Study predicting(simulator, &simulator);
  Study measuring(*backend, &simulator);
  if (probed) {
    predicting.know_machine(where, *probed);
    measuring.know_machine(where, *probed);
  }
  const bool print = arguments.prints_text();
  const Comparisons comparisons =
      compare(console, predicting, measuring, sweep.queries(), where, print);
  if (print) print_not_here(console, comparisons.measured, sweep.all_algorithms);
  if (!json.empty()) write_output(console, json, comparisons_json(comparisons, where));
  if (!csv.empty()) write_output(console, csv, comparisons_csv(comparisons, where));
  write_both(arguments, console, predicting, measuring, comparisons, where, trace);
  return conclude(comparisons.measured, sweep.all_algorithms);
}

}  // namespace

const Verb& compare_verb() {
  static const Verb verb = {
      "compare",
      "predict a collective on this machine, run it, and show the prediction error",
      "Simulates every program on the topology of this machine and executes the same program with "
      "real data. The table shows both times and the error of the prediction, by message size; "
      "the median error follows below. --topology names a file written by `espalier probe`. "
      "Without it, the machine is probed first, and --output saves the result; if there are "
      "several GPUs, each is a rank, unless --ranks or --devices is given. --trace writes the "
      "timelines of the fastest run of the largest message, predicted and measured, one below the "
      "other. The exit code is 1 if an element is wrong.\n\n"
      "With --measured, nothing is run: measured times come from a log of nccl-tests or rccl-"
      "tests, whose collective, ranks and sizes are simulated on the machine that --topology "
      "names, out of place and in place (--in-place: only so). --size and --collective choose "
      "among what the log has. The figures of a log are means of calls back to back, and are "
      "compared with those of simulated ones, launched as the log says, or as --launch does.",
      {},
      {{"--backend", "host"},
       {"--devices", "all"},
       {"--ranks", "4"},
       {"--topology"},
       {"--measured"},
       {"--gpus", "all"},
       {"--relay"},
       {"--collective", "allreduce"},
       {"--root", "0"},
       {"--algorithm", "ring"},
       {"--size", "1MiB..256MiB"},
       {"--chunk", "auto"},
       {"--profile", "kernel"},
       {"--no-merge"},
       {"--launch", "per_gpu"},
       {"--nccl-version"},
       {"--no-nccl"},
       {"--links", "all"},
       {"--in-place"},
       {"--dtype", "float"},
       {"--op", "sum"},
       {"--iters", "20"},
       {"--warmup", "1"},
       {"--no-check"},
       {"--timeout", "60"},
       {"--budget"},
       {"--output"},
       {"--json"},
       {"--csv"},
       {"--trace"},
       {"--trace-ops", "50000"},
       {"--html"}},
      {{"compare --algorithm ring optimal", "four ranks on this computer"},
       {"compare --backend cuda --devices 0,0,0,0,0,0,0,0 --size 16MiB..256MiB",
        "eight ranks on one GPU, probed first"},
       {"compare --backend cuda --topology here.yaml --algorithm all --trace both.json",
        "every algorithm on a machine probed earlier"},
       {"compare --measured nccl.log --topology dgx-a100 --algorithm all --profile nccl",
        "a log of nccl-tests with what is simulated"}},
      run_compare};
  return verb;
}

}  // namespace espalier
