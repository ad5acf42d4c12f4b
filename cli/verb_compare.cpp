// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <set>

#include "cli/compare_measured.h"
#include "cli/compare_table.h"
#include "cli/paging.h"
#include "cli/probing.h"
#include "cli/sweep.h"
#include "cli/table_notes.h"
#include "cli/trace_output.h"
#include "cli/verb.h"
#include "core/file.h"
#include "core/words.h"
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
  query.all_rounds = true;
  query.run.iterations = 1;
  return comparison_trace(predicting.ask(query), measuring.ask(query), most_ops);
}

/// Who answers: the simulator, the back end and, where it is compared with, the library.
struct Answering {
  Study& predicting;
  Study& measuring;
  Study* library = nullptr;
  FigureCheck check = {};     ///< of the machine, if there is one
  bool draws_bounds = false;  ///< on a page; no table has them
};

/// Asks the studies, with a progress bar; prints the table when `print`.
Comparisons compare(const Console& console, const Answering& answering,
                    const std::vector<Query>& queries, const std::string& where, bool print) {
  Refusals refusals(console);
  CompareTable table(console, where, head_of(answering.predicting, queries));
  Progress progress(console, (answering.library == nullptr ? 2 : 3) * queries.size());
  const auto predict = [&](const Query& query) {
    progress.step("simulated " + progress_label(query));
    Query asked = query;
    asked.judge = answering.draws_bounds;
    return answering.predicting.ask(asked);
  };
  const auto measure = [&](const Query& query) {
    progress.step(progress_label(query));
    return answering.measuring.ask(query);
  };
  AskQuery measure_library;
  if (answering.library != nullptr) {
    measure_library = [&](const Query& query) {
      progress.step("the library beside " + progress_label(query));
      return answering.library->ask(query);
    };
  }
  Comparisons comparisons = compare_table(
      queries, predict, measure,
      [&](const Outcome& measured, const Comparison* row) {
        progress.erase();
        refusals.add(measured.problems);
        if (print && row != nullptr) table.add(*row);
      },
      measure_library, answering.check);
  if (print) table.finish(comparisons);
  return comparisons;
}

/// Why the named machine may not be this one.
void say_doubts(const Console& console, const std::string& machine, const BackendEntry& entry,
                const DeviceChoice& choice) {
  // Of processes, the same numbers may be of GPUs of several hosts.
  const std::vector<int>& devices = choice.devices;
  const bool is_one = std::set<int>(devices.begin(), devices.end()).size() == 1;
  const bool says_who_shares = !choice.gpu_memory || is_one;
  for (const std::string& doubt :
       doubts_about(open_machine(machine), measured_in_place_of_gpus(entry, choice),
                    says_who_shares ? devices : std::vector<int>())) {
    say(console, "note: " + doubt);
  }
}

/// Reads --against: whether a library is measured, too. Notes a problem where the back end has
/// none, and where ranks share a device, of which a library has one each.
bool read_against(Arguments& arguments, const BackendEntry& entry,
                  const std::vector<int>& devices) {
  if (!arguments.given("--against")) return false;
  const std::string word = arguments.text("--against");
  if (entry.library.empty()) {
    arguments.problem_of("--against",
                         fmt::format("back end {} has no library to measure against", entry.name),
                         "--backend cuda has nccl");
  } else if (word != entry.library) {
    arguments.problem_of("--against", "unknown library " + quote(word),
                         did_you_mean(word, {std::string(entry.library)}));
  } else if (std::set<int>(devices.begin(), devices.end()).size() < devices.size()) {
    arguments.problem_of(
        "--against",
        fmt::format("{} has one rank on a device, and --devices names one twice", word));
  }
  return true;
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

std::vector<OptionUse> compare_options() {
  return {{"--backend", "host"},
          {"--devices", "all"},
          {"--memory", "host"},
          {"--transport", "auto"},
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
          {"--against"},
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
          {"--html"}};
}

/// The machine of a question that names none, which then asks about it.
Topology probe_for(Arguments& arguments, const Console& console, const BackendEntry& entry,
                   const DeviceChoice& choice, Query& question) {
  const bool ranks_named = !choice.devices.empty() || arguments.given("--ranks");
  const int ranks = ranks_named ? question.ranks : ranks_to_probe(entry, question.ranks);
  const ProbeRequest request = probe_request_for(entry, choice, ranks, question.run.timeout_s);
  Topology probed = probed_machine(survey_machine(request, console));
  question.topology = probed.title + ", probed just now";
  question.ranks = 0;
  return probed;
}

/// Whether the machine still is as probed, where all of it is at work.
FigureCheck check_for(const BackendEntry& entry, const DeviceChoice& choice, Backend& backend,
                      const Topology& machine, const Query& question) {
  if (!question.gpus.empty() || !question.relays.empty()) return {};
  return figure_check(entry, choice, backend, machine, question.run.timeout_s);
}

/// Before anything takes time. What is predicted of a library is about the version that is here,
/// unless the question names one.
void require_library(const BackendEntry& entry, Query& question) {
  const int version = entry.require_library();
  if (question.library_version == 0) question.library_version = version;
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
  DeviceChoice choice = read_device_choice(arguments, entry);
  count_ranks(arguments, choice.devices, sweep.question);
  const bool has_library = read_against(arguments, entry, choice.devices);
  if (!output.empty() && !sweep.question.topology.empty()) {
    arguments.problem_of("--output", "nothing is probed if --topology names a machine");
  }
  refuse_budget(arguments);
  arguments.finish();
  count_processes(arguments, entry, sweep.question);
  const Console console = console_for(entry, given);
  Query& question = sweep.question;
  if (has_library) require_library(entry, question);
  say_version(notes_to(console), question.library_version);
  std::optional<Topology> probed;
  if (question.topology.empty()) {
    probed = probe_for(arguments, console, entry, choice, question);
    if (!output.empty()) write_output(console, output, print_topology(*probed));
  }
  const std::string where = question.topology;
  question.judge = false;
  if (!measured_in_place_of_gpus(entry, choice).empty()) question.against_nccl = false;
  if (!probed) say_doubts(console, where, entry, choice);

  choice.as_placed = !probed.has_value();
  const std::unique_ptr<Backend> backend = entry.make(choice);
  Simulator simulator;
  Study predicting(simulator, &simulator);
  Study measuring(*backend, &simulator);
  const std::unique_ptr<Backend> library_backend =
      has_library ? entry.make_library(*backend) : nullptr;
  std::optional<Study> library;
  if (library_backend) library.emplace(*library_backend, &simulator);
  if (probed) {
    predicting.know_machine(where, *probed);
    measuring.know_machine(where, *probed);
    if (library) library->know_machine(where, *probed);
  }
  const bool print = arguments.prints_text();
  const Comparisons comparisons =
      compare(console,
              {predicting, measuring, library ? &*library : nullptr,
               check_for(entry, choice, *backend, probed ? *probed : open_machine(where), question),
               arguments.given("--html")},
              sweep.queries(), where, print);
  if (print) print_not_here(console, comparisons.measured, sweep.all_algorithms);
  if (!json.empty()) write_output(console, json, comparisons_json(comparisons, where));
  if (!csv.empty()) write_output(console, csv, comparisons_csv(comparisons, where));
  write_both(arguments, console, predicting, measuring, comparisons, where, trace);
  const int code = conclude(comparisons.measured, sweep.all_algorithms);
  return comparisons.wrong_of_library() > 0 ? 1 : code;
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
      "other. On threads and processes, key figures of the machine are measured again before and "
      "after each row; rows where they are not as probed are marked with *, and a second median "
      "leaves them out. With --backend cuda, --against nccl also runs NCCL's own collective on the "
      "same buffers, checked and timed in the same way, and the speed-up over it that was measured "
      "stands beside the predicted one. The exit code is 1 if an element is wrong.\n\n"
      "With --measured, nothing is run: measured times come from a log of nccl-tests or rccl-"
      "tests, whose collective, ranks and sizes are simulated on the machine that --topology "
      "names, out of place and in place (--in-place: only so). --size and --collective choose "
      "among what the log has. The figures of a log are means of calls back to back, and are "
      "compared with those of simulated ones, launched as the log says, or as --launch does.",
      {},
      compare_options(),
      {{"compare --algorithm ring optimal", "four ranks on this computer"},
       {"compare --backend cuda --devices 0,0,0,0,0,0,0,0 --size 16MiB..256MiB",
        "eight ranks on one GPU, probed first"},
       {"compare --backend cuda --topology here.yaml --algorithm all --trace both.json",
        "every algorithm on a machine probed earlier"},
       {"compare --backend cuda --topology here.yaml --algorithm optimal --against nccl",
        "the speed-up over NCCL, predicted and measured"},
       {"compare --measured nccl.log --topology dgx-a100 --algorithm all --profile nccl",
        "a log of nccl-tests with what is simulated"}},
      run_compare};
  return verb;
}

}  // namespace espalier
