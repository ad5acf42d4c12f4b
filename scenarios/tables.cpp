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

namespace {

template <class Counts>
std::optional<double> median_error_of(const std::vector<Comparison>& rows, const Counts& counts) {
  std::vector<double> errors;
  for (const Comparison& row : rows) {
    if (counts(row)) errors.push_back(std::abs(row.error()));
  }
  if (errors.empty()) return std::nullopt;
  return median(std::move(errors));
}

}  // namespace

std::optional<double> Comparisons::median_error(std::int64_t min_bytes) const {
  return median_error_of(
      rows, [&](const Comparison& row) { return row.measured.report.message_bytes >= min_bytes; });
}

std::optional<double> Comparisons::median_error_as_probed(std::int64_t min_bytes) const {
  return median_error_of(rows, [&](const Comparison& row) {
    return row.measured.report.message_bytes >= min_bytes && !row.is_of_changed_machine();
  });
}

bool Comparisons::are_checked() const {
  return std::ranges::any_of(rows, [](const Comparison& row) { return row.changed.has_value(); });
}

namespace {

/// The working set that stands for a message: of those with figures, the nearest to input and
/// output of a rank. \pre there are figures
std::int64_t nearest_set(const std::vector<CheckedFigure>& figures, std::int64_t message_bytes) {
  const auto factor = [&](const CheckedFigure& figure) {
    const double ratio = 2 * static_cast<double>(message_bytes) / static_cast<double>(figure.bytes);
    return std::max(ratio, 1 / ratio);
  };
  return std::ranges::min_element(figures, {}, factor)->bytes;
}

/// What has changed before or after and says something of such a message, each figure once, as it
/// was off most.
std::vector<CheckedFigure> changed_figures(const std::vector<CheckedFigure>& before,
                                           const std::vector<CheckedFigure>& after,
                                           std::int64_t message_bytes) {
  std::vector<CheckedFigure> changed;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const CheckedFigure& worse = before[i].factor() > after[i].factor() ? before[i] : after[i];
    if (worse.has_changed() && worse.bytes == nearest_set(after, message_bytes)) {
      changed.push_back(worse);
    }
  }
  return changed;
}

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
    const AskQuery& measure_library, const FigureCheck& check) {
  Comparisons all;
  std::vector<CheckedFigure> figures;
  if (check) figures = check();
  const bool is_checked = !figures.empty();
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
      if (is_checked) {
        const std::vector<CheckedFigure> before = std::exchange(figures, check());
        all.rows.back().changed =
            changed_figures(before, figures, all.rows.back().measured.report.message_bytes);
      }
      answered(measured, &all.rows.back());
    }
    all.measured.add(std::move(measured));
  }
  return all;
}

}  // namespace espalier
