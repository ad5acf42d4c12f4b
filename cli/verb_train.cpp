// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/paging.h"
#include "cli/process.h"
#include "cli/sweep.h"
#include "cli/table_notes.h"
#include "cli/trace_output.h"
#include "cli/training_table.h"
#include "cli/verb.h"
#include "core/units.h"
#include "formats/machine.h"
#include "ir/data.h"
#include "ir/text.h"
#include "report/outcomes.h"
#include "report/results.h"
#include "scenarios/study_workers.h"
#include "scenarios/tables.h"
#include "scenarios/tuner.h"
#include "scenarios/turns.h"
#include "sim/simulator.h"
#include "topologies/load.h"

namespace espalier {

namespace {

/// What the options ask.
struct TrainingWords {
  TrainingSweep sweep;
  bool all_algorithms = false;
};

/// For every number of --gpu-counts, that many GPUs from the front.
void read_gpu_sets(Arguments& arguments, TrainingSweep& sweep) {
  const std::vector<int>& gpus = sweep.question.exchange.gpus;
  if (!arguments.given("--gpu-counts")) {
    sweep.gpu_sets = {gpus};
    return;
  }
  const auto counts = parse_int_list(arguments.text("--gpu-counts"));
  if (!counts || counts->empty()) {
    arguments.problem_of("--gpu-counts", "the numbers of GPUs are missing", "such as 1,2,4,8");
    return;
  }
  for (const int count : *counts) {
    if (count >= 1 && count <= sweep.ranks) {
      sweep.gpu_sets.push_back(first_gpus(gpus, count));
    } else if (sweep.ranks > 0) {
      arguments.problem_of("--gpu-counts",
                           fmt::format("there are {} GPUs, not {}", sweep.ranks, count));
    }
  }
}

/// How long one GPU computes: as given, or as the model knows, which must itself be known.
void read_step(Arguments& arguments, TrainingSweep& sweep) {
  TrainingQuery& question = sweep.question;
  std::optional<int> batch;
  if (arguments.given("--batch")) {
    batch = static_cast<int>(arguments.integer("--batch", 1, kMaxBatch));
  }
  std::optional<std::string> gpu_type;
  if (arguments.given("--gpu-type")) gpu_type = arguments.text("--gpu-type");
  if (arguments.given("--compute-ms")) {
    if (gpu_type) arguments.problem("--compute-ms and --gpu-type exclude each other");
    if (!batch) arguments.problem("--compute-ms also needs --batch");
    set_given_step(question, arguments.number("--compute-ms", kMinComputeMs, kMaxComputeMs),
                   batch.value_or(1));
  } else if (question.model && sweep.ranks > 0) {
    try {
      set_known_step(question, open_machine(question.exchange.topology), gpu_type, batch);
    } catch (const Error& error) {
      const Diagnostic& problem = error.diagnostics().front();
      arguments.problem(problem.message,
                        problem.suggestion.empty()
                            ? "set it with --compute-ms"
                            : problem.suggestion + "; or set it with --compute-ms");
    }
  }
}

TrainingWords read_training(Arguments& arguments) {
  TrainingWords training;
  TrainingSweep& sweep = training.sweep;
  TrainingQuery& question = sweep.question;
  if (arguments.given("--model")) {
    if (auto model =
            arguments.reading("--model", [&] { return load_model(arguments.text("--model")); })) {
      question.model = std::make_shared<const Model>(std::move(*model));
    }
  } else if (!arguments.has_unknown()) {
    arguments.problem("no model is given: --model is missing", "espalier list models");
  }
  sweep.ranks = read_machine(arguments, question.exchange);
  read_simulation(arguments, question.exchange);
  AlgorithmWords words =
      read_algorithms(arguments, Collective::allreduce, [&](const std::string& word) {
        arguments.reading("--algorithm", [&] {
          check_exchange(word);
          return true;
        });
      });
  sweep.algorithms = std::move(words.names);
  training.all_algorithms = words.all;
  sweep.fusions = arguments.sizes("--fusion");
  question.type = arguments.choice_among("--dtype", all_data_types());
  question.overlap = !arguments.flag("--no-overlap");
  if (sweep.ranks > 0) {
    sweep.speeds = speeds_of(open_machine(question.exchange.topology), question.exchange.gpus);
  }
  read_gpu_sets(arguments, sweep);
  read_step(arguments, sweep);
  return training;
}

/// Whether an algorithm among them is chosen by simulating. Choices learn from earlier ones for the
/// same GPUs, so it would matter who had which questions.
bool any_chooses(Study& study, const TrainingSweep& sweep) {
  const auto chooses = [&](const ExchangeCollective& stage) {
    Query one = sweep.question.exchange;
    one.collective = stage.collective;
    one.algorithm = stage.algorithm;
    return candidates_of(study, one).has_value();
  };
  return std::ranges::any_of(sweep.algorithms, [&](const std::string& algorithm) {
    return std::ranges::any_of(collectives_of(algorithm), chooses);
  });
}

/// Puts all of them into the queue, by their places.
void ask_workers(StudyWorkers& workers, const std::vector<TrainingQuery>& queries, bool any_chooses,
                 std::vector<Json>& records) {
  for (std::size_t number = 0; number < queries.size(); ++number) {
    const Query& exchange = queries[number].exchange;
    const std::string gpus = fmt::format("{}", fmt::join(exchange.gpus, ","));
    const std::size_t group = workers.group(any_chooses ? gpus : gpus + ":" + exchange.algorithm);
    if (any_chooses) workers.keep_together(group);
    workers.add({.kind = StudyRequest::Kind::train, .training = number}, group,
                [&records, number](const StudyReply& reply) { records[number] = reply.answer; });
  }
  workers.start();
}

/// Asks workers the questions of the table with a progress bar; prints it when `print`.
TrainingAnswers train_all(const Console& console, Study& study, Simulator& simulator,
                          const TrainingSweep& sweep, int jobs, bool print) {
  const std::vector<TrainingQuery> queries = sweep.queries();
  study.topology(queries.front().exchange);  // which the workers then know
  StudyWorkers workers(study, simulator, useful_workers(jobs, queries.size()),
                       StudyWorkers::Impossible::error, queries);
  std::vector<Json> records(queries.size());
  ask_workers(workers, queries, any_chooses(study, sweep), records);
  Refusals refusals(console);
  std::optional<TrainingTable> table;
  if (print) table.emplace(console, sweep);
  Progress progress(console, queries.size());
  remind_of_engine(progress, queries.front().exchange.run);
  const SweepProgress shown = {[&](std::string_view label) { progress.resume(label); },
                               [&](std::string_view label) { progress.step(label); }};
  Turns turns(queries.size());
  std::size_t next = 0;
  const auto ask = [&](const TrainingQuery& query) {
    const std::size_t number = next++;
    const auto answer = [&] {
      workers.wait_for(number, shown);
      TrainingOutcome outcome;
      read_record(std::exchange(records[number], {}), outcome);
      outcome.query = query;
      return outcome;
    };
    return turns.take(query, answer);
  };
  TrainingAnswers answers = train_table(sweep, ask, [&](const TrainingOutcome& outcome) {
    progress.erase();
    refusals.add(outcome.problems);
    if (table) table->add(outcome);
  });
  if (table) table->finish(answers);
  return answers;
}

int run_train(Arguments& arguments, const Console& console) {
  keep_freed_memory();
  const TrainingWords training = read_training(arguments);
  const std::string json = arguments.output("--json");
  const std::string csv = arguments.output("--csv");
  const TraceOutput trace = read_trace(arguments);
  const std::string save = arguments.output("--save");
  const std::string html = arguments.output("--html");
  const int jobs = read_jobs(arguments);
  const TimeLimit limit(read_budget_s(arguments));
  arguments.finish();

  Simulator simulator;
  Study study(simulator, &simulator);
  const bool print = arguments.prints_text();
  const TrainingAnswers answers = train_all(console, study, simulator, training.sweep, jobs, print);
  if (print) print_not_here(console, answers, training.all_algorithms);
  const TrainingOutcome* best = answers.best();
  if (print && best != nullptr && arguments.flag("--show-buckets")) print_buckets(console, *best);
  if (!json.empty()) write_output(console, json, answers_json(answers));
  if (!csv.empty()) write_output(console, csv, answers_csv(answers));
  if (best != nullptr && !(trace.path.empty() && save.empty() && html.empty())) {
    const TrainingOutcome again = train(study, simulator, best->query);
    if (!trace.path.empty()) {
      write_trace(console, trace, training_trace(again, trace.most_ops));
    }
    if (!save.empty()) write_output(console, save, print_program(again.iteration.program));
    if (!html.empty()) write_page(console, html, page_of(arguments, study, answers, again));
  }
  return conclude(answers, training.all_algorithms);
}

}  // namespace

const Verb& train_verb() {
  static const Verb verb = {
      "train",
      "predict how long an iteration of training takes on a machine",
      "Every GPU computes the forward and backward pass for its share of a batch, and gradients "
      "are "
      "added up over all GPUs. They are collected in fusion buffers; each bucket is exchanged "
      "when its last gradient is ready, one bucket after the other. The whole iteration is one "
      "program, which is verified and simulated. Exposed is the time by which the iteration "
      "exceeds "
      "computation, and hidden is the rest of the communication. Efficiency is samples per second, "
      "compared with those of as many GPUs that do not communicate. An "
      "algorithm is one for "
      "allreduce, auto, tuned:FILE, or a pair such as knomial+pipelined_chain: a reduce, then a "
      "broadcast "
      "of the result. owners:direct+pipelined_chain is a reducescatter, then a broadcast by every "
      "rank.",
      {},
      {{"--model"},
       {"--topology"},
       {"--gpus", "all"},
       {"--relay"},
       {"--gpu-counts"},
       {"--algorithm", "ring"},
       {"--batch"},
       {"--gpu-type"},
       {"--compute-ms"},
       {"--fusion", "64MiB"},
       {"--dtype", "float"},
       {"--no-overlap"},
       {"--chunk", "auto"},
       {"--profile", "kernel"},
       {"--links", "all"},
       {"--engine", "auto"},
       {"--jobs", "0"},
       {"--budget"},
       {"--json"},
       {"--csv"},
       {"--html"},
       {"--trace"},
       {"--trace-ops", "50000"},
       {"--save"},
       {"--show-buckets"}},
      {{"train --model resnet50 --topology dgx1-v100 --gpu-counts 1,2,4,8",
        "how ResNet-50 scales on a DGX-1"},
       {"train --model vgg16 --topology dgx1-p100 --fusion 0,1MiB..256MiB --show-buckets",
        "which fusion buffer is best, and when its buckets are exchanged"},
       {"train --model lm300m --topology baidu40 --no-overlap",
        "a language model on 40 GPUs, gradients exchanged after the backward pass"},
       {"train --model resnet152 --topology p3.16xlarge --algorithm ring optimal parameter_server "
        "--trace timeline.json",
        "three ways of adding up gradients, and the timeline of the fastest"}},
      run_train};
  return verb;
}

}  // namespace espalier
