// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/report.h"
#include "cli/sweep.h"
#include "cli/training_table.h"
#include "cli/verbs.h"
#include "core/units.h"
#include "ir/data.h"
#include "ir/text.h"
#include "sim/simulator.h"
#include "topologies/load.h"

namespace espalier {

namespace {

constexpr int kMostBatch = 1 << 24;
constexpr double kLeastComputeMs = 1e-3;
constexpr double kMostComputeMs = 1e7;

/// What the options ask.
struct TrainingSweep {
  TrainingQuery question;  ///< GPUs, fusion buffer and algorithm still to be filled in
  std::vector<std::vector<int>> gpu_sets;
  std::vector<std::int64_t> fusions;
  std::vector<std::string> algorithms;
  bool all_algorithms = false;
  std::string step_source;

  std::vector<TrainingQuery> queries() const {
    std::vector<TrainingQuery> all;
    for (const std::vector<int>& gpus : gpu_sets) {
      for (const std::int64_t fusion : fusions) {
        for (const std::string& algorithm : algorithms) {
          TrainingQuery& query = all.emplace_back(question);
          query.exchange.gpus = gpus;
          query.fusion_bytes = fusion;
          query.exchange.algorithm = algorithm;
        }
      }
    }
    return all;
  }
};

/// The first so many of the GPUs, for every number of --gpu-counts.
void read_gpu_sets(Arguments& arguments, TrainingSweep& sweep, int ranks) {
  std::vector<int> gpus = sweep.question.exchange.gpus;
  if (!arguments.given("--gpu-counts")) {
    sweep.gpu_sets = {std::move(gpus)};
    return;
  }
  const auto counts = parse_int_list(arguments.text("--gpu-counts"));
  if (!counts || counts->empty()) {
    arguments.problem_of("--gpu-counts", "numbers of GPUs are missing", "such as 1,2,4,8");
    return;
  }
  if (gpus.empty()) {
    gpus.resize(static_cast<std::size_t>(ranks));
    std::iota(gpus.begin(), gpus.end(), 0);
  }
  for (const int count : *counts) {
    if (count >= 1 && count <= ranks) {
      sweep.gpu_sets.emplace_back(gpus.begin(), gpus.begin() + count);
    } else if (ranks > 0) {
      arguments.problem_of("--gpu-counts", fmt::format("there are {} GPUs, not {}", ranks, count));
    }
  }
}

/// What the machine's GPUs are; they are alike wherever step times are known.
std::string gpu_type(const Arguments& arguments, const Query& question) {
  if (arguments.given("--gpu-type")) return arguments.text("--gpu-type");
  const Topology machine = load_topology(question.topology);
  const std::vector<NodeId> gpus = machine.gpus();
  return machine.nodes[gpus[question.gpus.empty() ? 0 : question.gpus.front()]].model;
}

void read_known_step(const Arguments& arguments, std::optional<int> batch, TrainingSweep& sweep) {
  TrainingQuery& question = sweep.question;
  const StepTime& step = find_step(*question.model, gpu_type(arguments, question.exchange), batch);
  question.step_s = step.step_s;
  question.batch = step.batch;
  sweep.step_source = step.source;
}

/// How long one GPU computes: as given, or as the model knows, which must itself be known.
void read_step(Arguments& arguments, TrainingSweep& sweep, bool has_machine) {
  TrainingQuery& question = sweep.question;
  std::optional<int> batch;
  if (arguments.given("--batch")) {
    batch = static_cast<int>(arguments.integer("--batch", 1, kMostBatch));
  }
  if (arguments.given("--compute-ms")) {
    if (arguments.given("--gpu-type")) {
      arguments.problem("--compute-ms and --gpu-type exclude each other");
    }
    if (!batch) arguments.problem("--compute-ms is the time of which --batch?");
    question.step_s = arguments.number("--compute-ms", kLeastComputeMs, kMostComputeMs) * 1e-3;
    question.batch = batch.value_or(1);
    sweep.step_source = "as given";
  } else if (question.model && has_machine) {
    try {
      read_known_step(arguments, batch, sweep);
    } catch (const Error& error) {
      const Diagnostic& problem = error.diagnostics().front();
      arguments.problem(problem.message, problem.suggestion.empty()
                                             ? "--compute-ms gives it"
                                             : problem.suggestion + "; or --compute-ms gives it");
    }
  }
}

TrainingSweep read_training(Arguments& arguments) {
  TrainingSweep sweep;
  TrainingQuery& question = sweep.question;
  if (arguments.given("--model")) {
    if (auto model =
            arguments.reading("--model", [&] { return load_model(arguments.text("--model")); })) {
      question.model = std::make_shared<const Model>(std::move(*model));
    }
  } else if (!arguments.has_unknown()) {
    arguments.problem("which model? --model is missing", "espalier list models");
  }
  const int ranks = read_machine(arguments, question.exchange);
  read_simulation(arguments, question.exchange);
  AlgorithmWords words =
      read_algorithms(arguments, Collective::allreduce, [&](const std::string& word) {
        arguments.reading("--algorithm", [&] {
          check_exchange(word);
          return true;
        });
      });
  sweep.algorithms = std::move(words.names);
  sweep.all_algorithms = words.all;
  sweep.fusions = arguments.sizes("--fusion");
  question.type = arguments.choice_among("--dtype", all_data_types());
  question.overlap = !arguments.flag("--no-overlap");
  read_gpu_sets(arguments, sweep, ranks);
  read_step(arguments, sweep, ranks > 0);
  return sweep;
}

/// What came out, without programs and timelines, which may be large.
struct TrainingAnswers {
  std::vector<TrainingOutcome> outcomes;
  Answers refused;  ///< what did not run

  /// The fastest on most GPUs; null when nothing ran.
  const TrainingOutcome* best() const {
    const auto best = std::ranges::max_element(outcomes, {}, [](const TrainingOutcome& outcome) {
      return std::pair(outcome.ranks, outcome.samples_per_s());
    });
    return best == outcomes.end() ? nullptr : &*best;
  }

  void add(TrainingOutcome outcome) {
    const Query& query = outcome.query.exchange;
    if (outcome.skipped) {
      refused.skip({query.topology, query.gpus, std::string(to_string(Collective::allreduce)),
                    query.algorithm, *outcome.skipped, outcome.instead});
    } else if (!outcome.problems.empty()) {
      refused.refuse(query.algorithm);
    } else {
      outcome.iteration = {};
      outcome.report.timeline.clear();
      outcomes.push_back(std::move(outcome));
    }
  }
};

TrainingAnswers answer(const Console& console, Study& study, Simulator& simulator,
                       const TrainingSweep& sweep, bool print) {
  const std::vector<TrainingQuery> queries = sweep.queries();
  TrainingTable table(console, sweep.algorithms);
  TrainingAnswers answers;
  if (print) {
    const int ranks = study.machine(sweep.question.exchange).ranks();
    table.header(sweep.question, ranks, sweep.step_source);
  }
  Progress progress(console, queries.size());
  for (const TrainingQuery& query : queries) {
    progress.step(fmt::format("{} {}", query.exchange.algorithm, query.model->name));
    TrainingOutcome outcome = train(study, simulator, query);
    progress.erase();
    for (const Diagnostic& problem : outcome.problems) say(console, render(problem));
    if (print && outcome.ran()) table.row(outcome);
    answers.add(std::move(outcome));
  }
  return answers;
}

std::string answers_json(const TrainingAnswers& answers, const std::string& step_source) {
  Json all = Json::array();
  for (const TrainingOutcome& outcome : answers.outcomes) {
    all.push_back(training_json(outcome, step_source));
  }
  for (const Skipped& one : answers.refused.skipped) all.push_back(skipped_json(one));
  return dump_one_or_array(all);
}

int run_train(Arguments& arguments, const Console& console) {
  const TrainingSweep sweep = read_training(arguments);
  const std::string json = arguments.output("--json");
  const std::string trace = arguments.output("--trace");
  const std::string save = arguments.output("--save");
  arguments.finish();

  Simulator simulator;
  Study study(simulator, &simulator);
  const bool print = json != "-" && trace != "-" && save != "-";
  TrainingAnswers answers = answer(console, study, simulator, sweep, print);
  const TrainingOutcome* best = answers.best();
  if (print) {
    print_skipped(console, answers.refused);
    if (best != nullptr && arguments.flag("--show-buckets")) print_buckets(console, *best);
  }
  if (!json.empty()) write_output(console, json, answers_json(answers, sweep.step_source));
  if (best != nullptr && !(trace.empty() && save.empty())) {
    const TrainingOutcome again = train(study, simulator, best->query);
    if (!trace.empty()) write_output(console, trace, training_trace(again));
    if (!save.empty()) write_output(console, save, print_program(again.iteration.program));
  }
  if (sweep.all_algorithms && best != nullptr) answers.refused.skipped.clear();
  return conclude(answers.refused, false);
}

}  // namespace

const Verb& train_verb() {
  static const Verb verb = {
      "train",
      "predict how long an iteration of training takes on a machine",
      "Every GPU computes the forward and backward pass of its share of a batch; gradients are "
      "added up over all GPUs. They are gathered in fusion buffers, and each bucket is exchanged "
      "as soon as its last gradient is made, one after the other. The whole iteration is one "
      "program, verified and simulated. Exposed is what the iteration takes longer than "
      "computing, hidden the rest of the communication, and efficiency is samples per second "
      "against those of as many GPUs that need not communicate. An algorithm is one for "
      "allreduce, auto, tuned:FILE, or two as knomial+pipelined_chain: a reduce, and a broadcast "
      "of the result.",
      {},
      {{"--model"},          {"--topology"},
       {"--gpus", "all"},    {"--relay"},
       {"--gpu-counts"},     {"--algorithm", "ring"},
       {"--batch"},          {"--gpu-type"},
       {"--compute-ms"},     {"--fusion", "64MiB"},
       {"--dtype", "float"}, {"--no-overlap"},
       {"--chunk", "auto"},  {"--profile", "kernel"},
       {"--links", "all"},   {"--engine", "auto"},
       {"--json"},           {"--trace"},
       {"--save"},           {"--show-buckets"}},
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
