// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/exec_table.h"
#include "cli/exporting.h"
#include "cli/nccl_tests_output.h"
#include "cli/paging.h"
#include "cli/probing.h"
#include "cli/sweep.h"
#include "cli/table_notes.h"
#include "cli/verb.h"
#include "report/outcomes.h"
#include "report/results.h"
#include "scenarios/describe.h"
#include "scenarios/tables.h"
#include "sim/simulator.h"

namespace espalier {

namespace {

/// So that a sweep does not end at its last size, after hours and without a report.
void require_room(const Console& console, Study& study, const Sweep& sweep, Buffers buffers) {
  Progress progress(console, sweep.algorithms.size());
  for (const std::string& algorithm : sweep.algorithms) {
    Query largest = sweep.question;
    largest.algorithm = algorithm;
    largest.size_bytes = std::ranges::max(sweep.sizes);
    progress.step(progress_label(largest));
    for (const bool in_place : {false, true}) {
      if (!in_place && buffers == Buffers::in_place) continue;
      largest.in_place = in_place;
      study.require_room(largest);
    }
  }
}

/// Runs one algorithm for every size, with a progress bar; prints its table when `print`.
Answers execute(const Console& console, Study& study, const std::vector<Query>& queries,
                Buffers buffers, bool print) {
  Refusals refusals(console);
  ExecTable table(console);
  Progress progress(console, (buffers == Buffers::both ? 2 : 1) * queries.size());
  const auto ask = [&](const Query& query) {
    progress.step(progress_label(query));
    return study.ask(query);
  };
  const auto answered = [&](const Outcome& out_of_place, const Outcome& in_place) {
    progress.erase();
    refusals.add(out_of_place.problems);
    refusals.add(in_place.problems);
    if (print) table.add(out_of_place, in_place);
  };
  Answers answers = execute_table(queries, ask, answered, buffers);
  if (print) table.finish(answers);
  return answers;
}

int run_exec(Arguments& arguments, const Console& given) {
  Sweep sweep = read_sweep(arguments);
  const std::string json = arguments.output("--json");
  const std::string csv = arguments.output("--csv");
  const std::string html = arguments.output("--html");
  const NcclTestsOutput table = read_nccl_tests_output(arguments, sweep);
  const ExportTarget target = read_export(arguments);
  const Buffers buffers = arguments.flag("--in-place") ? Buffers::in_place : Buffers::both;
  const BackendEntry& entry = read_backend(arguments);
  DeviceChoice choice = read_device_choice(arguments, entry);
  choice.as_placed = !sweep.question.topology.empty();
  count_ranks(arguments, choice.devices, sweep.question);
  arguments.finish();
  count_processes(arguments, entry, sweep.question);
  const Console console = console_for(entry, given);
  sweep.question.judge = !sweep.question.topology.empty();

  const std::unique_ptr<Backend> backend = entry.make(choice);
  Simulator simulator;
  Study study(*backend, &simulator);
  require_room(console, study, sweep, buffers);
  const bool print = arguments.prints_text();
  Answers answers;
  for (const std::string& algorithm : sweep.algorithms) {
    Sweep one = sweep;
    one.algorithms = {algorithm};
    answers.add(execute(console, study, one.queries(), buffers, print));
  }
  if (print) print_not_here(console, answers, sweep.all_algorithms);
  if (!json.empty()) write_output(console, json, answers_json(answers));
  if (!csv.empty()) write_output(console, csv, answers_csv(answers));
  if (!html.empty() && !answers.outcomes.empty()) {
    write_page(console, html, page_of(arguments, study, answers));
  }
  write_nccl_tests(console, arguments, table, study, answers);
  if (!target.path.empty() && answers.best() != nullptr) {
    export_outcome(console, target, study, *answers.best());
  }
  return conclude(answers, sweep.all_algorithms);
}

}  // namespace

const Verb& exec_verb() {
  static const Verb verb = {
      "exec",
      "run a collective with real data and check every element",
      "Builds and verifies the program, runs it on the threads and memory of this computer, "
      "with --backend cuda on its GPUs or, with --backend mpi, in the processes that mpirun has "
      "started, a rank each, out of place and in place, and compares the results with "
      "the correct ones; with --in-place only in place. The table is that of nccl-tests. The exit "
      "code is 1 if an element is wrong. A machine can be named to run the program made for it, "
      "with its chunk sizes and host memories; the times are always those of this computer. With "
      "--backend cuda, a machine's GPUs are the GPUs of this computer with the same numbers, "
      "unless --devices places the ranks. The algorithm auto is the fastest one on the named "
      "machine, tuned:FILE the choice of a table written by `espalier tune`.",
      {},
      {{"--backend", "host"},
       {"--devices", "all"},
       {"--memory", "host"},
       {"--transport", "auto"},
       {"--ranks", "4"},
       {"--topology"},
       {"--gpus", "all"},
       {"--relay"},
       {"--collective", "allreduce"},
       {"--root", "0"},
       {"--algorithm", "all"},
       {"--size", "32MiB"},
       {"--chunk", "auto"},
       {"--profile", "kernel"},
       {"--no-merge"},
       {"--links", "all"},
       {"--in-place"},
       {"--dtype", "float"},
       {"--op", "sum"},
       {"--iters", "20"},
       {"--warmup", "1"},
       {"--no-check"},
       {"--timeout", "60"},
       {"--export"},
       {"--to"},
       {"--instances", "auto"},
       {"--nccl-tests"},
       {"--json"},
       {"--csv"},
       {"--html"}},
      {{"exec --ranks 4 --algorithm ring", "four ranks on this computer"},
       {"exec --ranks 3 --size 1KiB..16MiB --dtype half --op max --algorithm ring",
        "other sizes, types and operators"},
       {"exec --backend cuda --devices 0,0,0,0 --algorithm ring --size 1KiB..1GiB",
        "four ranks on one GPU"},
       {"exec --backend mpi --algorithm ring halving_doubling",
        "after mpirun -n 8: a rank in each process"},
       {"exec --backend mpi --memory cuda --algorithm ring --size 1MiB..1GiB",
        "the same with a GPU for each process"},
       {"exec --topology dgx1-v100 --gpus 0-3 --algorithm ring --iters 5",
        "the program that would run on these GPUs"}},
      run_exec};
  return verb;
}

}  // namespace espalier
