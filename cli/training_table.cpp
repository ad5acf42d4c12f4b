// SPDX-License-Identifier: Apache-2.0
#include "cli/training_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report.h"
#include "cli/sweep.h"
#include "cli/text.h"
#include "cli/trace.h"
#include "ir/data.h"

namespace espalier {

namespace {

std::string milliseconds(double seconds) { return fit_number(seconds * 1e3, 8); }

std::string training_line(std::string_view gpus, std::string_view algorithm,
                          std::size_t label_width, std::string_view fusion,
                          std::string_view buckets, std::string_view iteration,
                          std::string_view communication, std::string_view exposed,
                          std::string_view hidden, std::string_view rate,
                          std::string_view efficiency) {
  return fmt::format("{:>6}  {:<{}}  {:>9}  {:>7}  {:>9}  {:>9}  {:>8}  {:>8}  {:>9}  {:>6}", gpus,
                     algorithm, label_width, fusion, buckets, iteration, communication, exposed,
                     hidden, rate, efficiency);
}

std::string fusion_text(std::int64_t bytes) { return bytes == 0 ? "none" : describe_size(bytes); }

/// "fc.weight", or "layer4.2.conv3.weight to conv1.weight (161)", in the order of the gradients.
std::string tensors_of(const Model& model, const Bucket& bucket) {
  const auto name = [&](std::size_t gradient) {
    return model.tensors[model.tensors.size() - 1 - gradient].name;
  };
  if (bucket.last - bucket.first == 1) return name(bucket.first);
  return fmt::format("{} to {} ({})", name(bucket.first), name(bucket.last - 1),
                     bucket.last - bucket.first);
}

Json buckets_json(const TrainingOutcome& outcome) {
  Json buckets = Json::array();
  for (const BucketOutcome& bucket : outcome.buckets) {
    buckets.push_back({{"tensors", bucket.bucket.last - bucket.bucket.first},
                       {"bytes", bucket.bytes},
                       {"algorithm", bucket.algorithm},
                       {"ready_s", rounded(bucket.ready_s)},
                       {"begin_s", rounded(bucket.begin_s)},
                       {"end_s", rounded(bucket.end_s)}});
  }
  return buckets;
}

/// A report without its lists.
Json figures_json(const TrainingOutcome& outcome) {
  const TrainingQuery& query = outcome.query;
  Json json;
  json["schema"] = "espalier.training/1";
  add_asked_by(outcome.asked_by, json);
  json["model"] = query.model->name;
  json["topology"] = query.exchange.topology;
  json["algorithm"] = query.exchange.algorithm;
  json["profile"] = query.exchange.profile;
  json["links_scope"] = to_string(query.exchange.links);
  json["gpus"] = gpu_numbers(query.exchange, outcome.ranks);
  if (!query.exchange.relays.empty()) json["relays"] = query.exchange.relays;
  json["ranks"] = outcome.ranks;
  json["batch"] = query.batch;
  json["step_s"] = rounded(query.step_s);
  json["step_source"] = query.step_source;
  json["dtype"] = to_string(query.type);
  json["fusion_bytes"] = query.fusion_bytes;
  json["overlap"] = query.overlap;
  json["message_bytes"] = outcome.report.message_bytes;
  json["compute_s"] = rounded(outcome.compute_s);
  json["communication_s"] = rounded(outcome.communication_s);
  json["exposed_s"] = rounded(outcome.exposed_s());
  json["hidden_s"] = rounded(outcome.hidden_s());
  json["iteration_s"] = rounded(outcome.iteration_s());
  json["samples_per_s"] = rounded(outcome.samples_per_s());
  json["efficiency"] = rounded(outcome.efficiency());
  json["transfers"] = outcome.report.transfers;
  json["verified"] = true;
  json["order_consistent"] = outcome.order_consistent;
  json["engine"] = outcome.report.simulated->engine;
  return json;
}

/// A line of what the step takes on GPUs whose speed is another than 1, or nothing.
std::string at_their_speeds(double step_s, const SpeedRange& speeds) {
  if (speeds.slowest == 1 && speeds.fastest == 1) return {};
  const std::string minimum = milliseconds(step_s / speeds.fastest);
  if (speeds.slowest == speeds.fastest) {
    return fmt::format("# {} ms at the speed of these GPUs, x{:g}\n", minimum, speeds.slowest);
  }
  return fmt::format("# {} to {} ms at the speeds of these GPUs, x{:g} to x{:g}\n", minimum,
                     milliseconds(step_s / speeds.slowest), speeds.slowest, speeds.fastest);
}

/// The rows of a table of training: one line for each outcome that ran, in the order asked.
class TrainingRows {
 public:
  TrainingRows(const Console& console, const std::vector<std::string>& algorithms)
      : console_(console) {
    for (const std::string& name : algorithms) label_width_ = std::max(label_width_, name.size());
  }

  /// What all rows share.
  void header(const TrainingSweep& sweep) const {
    const TrainingQuery& question = sweep.question;
    const Query& exchange = question.exchange;
    console_.out << fmt::format(
        "# training {} on {}\n# batch {} a GPU, {} ms an iteration on one GPU ({})\n{}"
        "# profile {}, links {}, {}, {}\n#\n",
        question.model->name, describe_ranks(exchange, sweep.ranks), question.batch,
        fit_number(question.step_s * 1e3, 8), question.step_source,
        at_their_speeds(question.step_s, sweep.speeds), exchange.profile, to_string(exchange.links),
        to_string(question.type),
        question.overlap ? "exchanged during the backward pass"
                         : "exchanged after the backward pass");
  }

  void row(const TrainingOutcome& outcome) {
    if (!std::exchange(has_names_, true)) {
      console_.out << header_line(training_line("GPUs", "algorithm", label_width_, "fusion",
                                                "buckets", "iteration", "commun.", "exposed",
                                                "hidden", outcome.query.model->sample + "s/s",
                                                "effic."))
                   << header_line(training_line("", "", label_width_, "", "", "(ms)", "(ms)",
                                                "(ms)", "(ms)", "", "(%)"));
    }
    console_.out << training_line(
                        fmt::format("{}", outcome.ranks), outcome.query.exchange.algorithm,
                        label_width_, fusion_text(outcome.query.fusion_bytes),
                        fmt::format("{}", outcome.buckets.size()),
                        milliseconds(outcome.iteration_s()), milliseconds(outcome.communication_s),
                        milliseconds(outcome.exposed_s()), milliseconds(outcome.hidden_s()),
                        fit_number(outcome.samples_per_s(), 9),
                        fmt::format("{:.1f}", 100 * outcome.efficiency()))
                 << '\n'
                 << std::flush;
  }

 private:
  const Console& console_;
  std::size_t label_width_ = 9;
  bool has_names_ = false;
};

}  // namespace

void TrainingAnswers::add(TrainingOutcome outcome) {
  const Query& query = outcome.query.exchange;
  if (outcome.skipped) {
    Skipped one = skipped_of(query, *outcome.skipped, outcome.instead);
    one.collective = to_string(Collective::allreduce);
    one.model = outcome.query.model->name;
    refused.skip(one);
  } else if (!outcome.problems.empty()) {
    refused.refuse(query.algorithm);
  } else {
    outcome.iteration = {};
    outcome.report.timeline.clear();
    outcomes.push_back(std::move(outcome));
  }
}

void TrainingAnswers::label(const AskedBy& asked_by) {
  for (TrainingOutcome& outcome : outcomes) outcome.asked_by = asked_by;
  refused.label(asked_by);
}

const TrainingOutcome* TrainingAnswers::best() const {
  const auto best = std::ranges::max_element(outcomes, {}, [](const TrainingOutcome& outcome) {
    return std::pair(outcome.ranks, outcome.samples_per_s());
  });
  return best == outcomes.end() ? nullptr : &*best;
}

std::string progress_label(const TrainingQuery& query) {
  return query.exchange.algorithm + " " + query.model->name;
}

TrainingAnswers train_table(const Console& console, const TrainingSweep& sweep,
                            const AskingTraining& asking, bool print) {
  const std::vector<TrainingQuery> queries = sweep.queries();
  TrainingRows rows(console, sweep.algorithms);
  TrainingAnswers answers;
  asking.progress.erase();
  if (print) rows.header(sweep);
  for (const TrainingQuery& query : queries) {
    TrainingOutcome outcome = asking.ask(query);
    asking.progress.erase();
    for (const Diagnostic& problem : outcome.problems) say(console, render(problem));
    if (print && outcome.ran()) rows.row(outcome);
    answers.add(std::move(outcome));
  }
  if (print) {
    print_skipped(console, answers.refused);
    console.out << std::flush;
  }
  return answers;
}

void print_buckets(const Console& console, const TrainingOutcome& outcome) {
  console.out << fmt::format("#\n# Buckets of {} on {}, fusion {}\n",
                             outcome.query.exchange.algorithm, counted(outcome.ranks, "GPU"),
                             fusion_text(outcome.query.fusion_bytes));
  Columns columns("rrlrrrl");
  columns.add({"bucket", "size(B)", "algorithm", "ready(ms)", "begin(ms)", "end(ms)", "gradients"});
  for (std::size_t number = 0; number < outcome.buckets.size(); ++number) {
    const BucketOutcome& bucket = outcome.buckets[number];
    columns.add({fmt::format("{}", number), fmt::format("{}", bucket.bytes), bucket.algorithm,
                 milliseconds(bucket.ready_s), milliseconds(bucket.begin_s),
                 milliseconds(bucket.end_s), tensors_of(*outcome.query.model, bucket.bucket)});
  }
  console.out << columns.render("#   ");
}

Json training_json(const TrainingOutcome& outcome) {
  Json json = figures_json(outcome);
  json["buckets"] = buckets_json(outcome);
  json["links"] = links_json(*outcome.report.simulated);
  json["wall_s"] = rounded(outcome.report.wall_s);
  return json;
}

const std::vector<std::string>& training_columns() {
  static const std::vector<std::string> columns = {
      "topology", "gpus",          "ranks",         "profile",         "algorithm",
      "model",    "batch",         "step_s",        "dtype",           "fusion_bytes",
      "overlap",  "message_bytes", "compute_s",     "communication_s", "exposed_s",
      "hidden_s", "iteration_s",   "samples_per_s", "efficiency",      "transfers"};
  return columns;
}

Json training_row(const TrainingOutcome& outcome) {
  Json row = figures_json(outcome);
  row["gpus"] = format_ranges(row["gpus"]);
  row["relays"] = format_ranges(outcome.query.exchange.relays);
  return row;
}

std::string training_trace(const TrainingOutcome& outcome) {
  const Iteration& iteration = outcome.iteration;
  const Program& program = iteration.program;
  return trace_json(program, outcome.report, [&](OpId id) {
    const std::string& part = iteration.parts[iteration.part_of[id]];
    const Op& op = program.ops[id];
    if (op.kind == OpKind::combine) return part + ": " + to_string(program, id);
    return op.lane == kComputeLane ? part : part + " begins";
  });
}

}  // namespace espalier
