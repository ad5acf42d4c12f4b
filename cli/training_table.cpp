// SPDX-License-Identifier: Apache-2.0
#include "cli/training_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/sim_table.h"
#include "cli/table_notes.h"
#include "cli/text.h"
#include "core/units.h"
#include "core/words.h"
#include "ir/data.h"
#include "scenarios/describe.h"

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

}  // namespace

TrainingTable::TrainingTable(const Console& console, const TrainingSweep& sweep)
    : console_(console) {
  for (const std::string& name : sweep.algorithms)
    label_width_ = std::max(label_width_, name.size());
  const TrainingQuery& question = sweep.question;
  const Query& exchange = question.exchange;
  console_.out << fmt::format(
      "# training {} on {}\n# batch {} per GPU, {} ms per iteration on one GPU ({})\n{}"
      "# profile {}, links {}, {}, {}\n#\n",
      question.model->name, describe_ranks(exchange, sweep.ranks), question.batch,
      fit_number(question.step_s * 1e3, 8), question.step_source,
      at_their_speeds(question.step_s, sweep.speeds), exchange.profile, to_string(exchange.links),
      to_string(question.type),
      question.overlap ? "exchanged during the backward pass"
                       : "exchanged after the backward pass");
}

void TrainingTable::add(const TrainingOutcome& outcome) {
  if (!outcome.ran()) return;
  if (!std::exchange(has_names_, true)) {
    console_.out << header_line(training_line("GPUs", "algorithm", label_width_, "fusion",
                                              "buckets", "iteration", "commun.", "exposed",
                                              "hidden", outcome.query.model->sample + "s/s",
                                              "effic."))
                 << header_line(training_line("", "", label_width_, "", "", "(ms)", "(ms)", "(ms)",
                                              "(ms)", "", "(%)"));
  }
  console_.out << training_line(fmt::format("{}", outcome.ranks), outcome.query.exchange.algorithm,
                                label_width_, fusion_text(outcome.query.fusion_bytes),
                                fmt::format("{}", outcome.buckets.size()),
                                milliseconds(outcome.iteration_s()),
                                milliseconds(outcome.communication_s),
                                milliseconds(outcome.exposed_s()), milliseconds(outcome.hidden_s()),
                                fit_number(outcome.samples_per_s(), 9),
                                fmt::format("{:.1f}", 100 * outcome.efficiency()))
               << '\n'
               << std::flush;
}

void TrainingTable::finish(const TrainingAnswers& answers) {
  print_table_notes(console_, answers.outcomes);
  console_.out << std::flush;
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

}  // namespace espalier
