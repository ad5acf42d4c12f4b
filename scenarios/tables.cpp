// SPDX-License-Identifier: Apache-2.0
#include "scenarios/tables.h"

#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/median.h"

namespace espalier {

Answers ask_table(const std::vector<Query>& queries, const AskQuery& ask,
                  const std::function<void(const Outcome&)>& answered) {
  Answers answers;
  for (const Query& query : queries) {
    Outcome outcome = ask(query);
    answered(outcome);
    answers.add(std::move(outcome));
  }
  return answers;
}

Answers execute_table(
    const std::vector<Query>& queries, const AskQuery& ask,
    const std::function<void(const Outcome& out_of_place, const Outcome& in_place)>& answered,
    Buffers buffers) {
  Answers answers;
  for (Query query : queries) {
    query.in_place = false;
    Outcome out_of_place = buffers == Buffers::both ? ask(query) : Outcome();
    query.in_place = true;
    Outcome in_place = ask(query);
    answered(out_of_place, in_place);
    if (buffers == Buffers::in_place) {
      answers.add(std::move(in_place));
      continue;
    }
    const bool is_half = out_of_place.skipped.has_value() != in_place.skipped.has_value();
    if (is_half) {
      // A program in a file is for one kind of buffers.
      const bool first = in_place.skipped.has_value();
      Outcome& done = first ? out_of_place : in_place;
      if (done.ran()) answers.add_half(first ? in_place : out_of_place);
      answers.add(std::move(done));
    } else if (out_of_place.skipped && out_of_place.skipped == in_place.skipped) {
      answers.add_neither(out_of_place);
    } else {
      answers.add(std::move(out_of_place));
      answers.add(std::move(in_place));
    }
  }
  return answers;
}

TrainingAnswers train_table(const TrainingSweep& sweep, const AskTraining& ask,
                            const std::function<void(const TrainingOutcome&)>& answered) {
  TrainingAnswers answers;
  for (const TrainingQuery& query : sweep.queries()) {
    TrainingOutcome outcome = ask(query);
    answered(outcome);
    answers.add(std::move(outcome));
  }
  return answers;
}

double Comparison::predicted_s() const {
  return measured.benchmark_s > 0 ? predicted.benchmark_s : predicted.report.time_s;
}

std::optional<double> Comparison::predicted_speedup() const {
  if (!predicted.nccl || predicted_s() <= 0) return std::nullopt;
  const Baseline& nccl = *predicted.nccl;
  return (measured.benchmark_s > 0 ? nccl.benchmark_s : nccl.time_s) / predicted_s();
}

double Comparison::error() const {
  const double measured_s = measured.report.executed->median_time_s;
  return measured_s > 0 ? predicted_s() / measured_s - 1 : 0;
}

std::optional<double> Comparison::measured_speedup() const {
  const double measured_s = measured.report.executed->median_time_s;
  if (!library || measured_s <= 0) return std::nullopt;
  return library->report.executed->median_time_s / measured_s;
}

std::int64_t Comparisons::wrong_of_library() const {
  std::int64_t wrong = 0;
  for (const Comparison& row : rows) {
    if (row.library) wrong += row.library->report.wrong_elements();
  }
  return wrong;
}

std::optional<double> Comparisons::median_error(std::int64_t min_bytes) const {
  std::vector<double> errors;
  for (const Comparison& row : rows) {
    if (row.measured.report.message_bytes >= min_bytes) errors.push_back(std::abs(row.error()));
  }
  if (errors.empty()) return std::nullopt;
  return median(std::move(errors));
}

namespace {

/// With chunks as the program had them, so that the buffers are the same.
Outcome answer_of_library(const AskQuery& measure_library, const Outcome& measured) {
  Query query = measured.query;
  query.chunk_bytes = measured.chunk_bytes;
  Outcome library = measure_library(query);
  if (library.skipped) throw Error(ErrorKind::unsupported, *library.skipped);
  library.program.reset();
  return library;
}

}  // namespace

Comparisons compare_table(
    const std::vector<Query>& queries, const AskQuery& predict, const AskQuery& measure,
    const std::function<void(const Outcome& measured, const Comparison* row)>& answered,
    const AskQuery& measure_library) {
  Comparisons all;
  for (const Query& query : queries) {
    Outcome predicted = predict(query);
    Outcome measured = predicted.ran() ? measure(query) : predicted;
    predicted.program.reset();  // it may be large, and the next one is too
    if (!measured.ran()) {
      answered(measured, nullptr);
    } else {
      Outcome kept = measured;
      kept.program.reset();
      all.rows.push_back({std::move(predicted), std::move(kept)});
      if (measure_library)
        all.rows.back().library = answer_of_library(measure_library, all.rows.back().measured);
      answered(measured, &all.rows.back());
    }
    all.measured.add(std::move(measured));
  }
  return all;
}

}  // namespace espalier
