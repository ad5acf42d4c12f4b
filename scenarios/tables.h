// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "probe/figure_check.h"
#include "scenarios/answers.h"
#include "scenarios/training_sweep.h"

// Asks the questions of one table, one after the other. Nothing here prints: who wants to show rows
// as they come is told of every answer.

namespace espalier {

/// Who answers a question: a study, worker processes.
using AskQuery = std::function<Outcome(const Query& query)>;
using AskTraining = std::function<TrainingOutcome(const TrainingQuery& query)>;

/// Asks all questions; `answered` is told of each answer, complete with its program.
Answers ask_table(const std::vector<Query>& queries, const AskQuery& ask,
                  const std::function<void(const Outcome&)>& answered);

/// Where the input of an executed collective lies.
enum class Buffers : std::uint8_t { both, in_place };

/// Asks every question twice, out of place and in place, as nccl-tests runs a collective, or only
/// in place; what was not asked is an outcome that did not run.
Answers execute_table(
    const std::vector<Query>& queries, const AskQuery& ask,
    const std::function<void(const Outcome& out_of_place, const Outcome& in_place)>& answered,
    Buffers buffers = Buffers::both);

/// Asks all questions of a sweep.
TrainingAnswers train_table(const TrainingSweep& sweep, const AskTraining& ask,
                            const std::function<void(const TrainingOutcome&)>& answered);

/// One program, predicted and measured; the outcomes are without the program itself.
struct Comparison {
  Outcome predicted;
  Outcome measured;
  /// A library's own collective, measured on the same buffers, where that was asked for.
  std::optional<Outcome> library = {};
  /// Key figures of the machine that were not as probed right before or after it was measured. Not
  /// given where nobody looked.
  std::optional<std::vector<CheckedFigure>> changed = {};

  /// Whether the machine is known to have been another one than was probed, about which the error
  /// then says more than about the model.
  bool is_of_changed_machine() const { return changed && !changed->empty(); }
  /// What the measured time is compared with: where a benchmark printed it, what is predicted of
  /// the benchmark, else the time of a call.
  double predicted_s() const;
  /// How many times as fast as the library it is predicted to be, by times of that kind.
  std::optional<double> predicted_speedup() const;
  /// What the prediction is off by, as a share of the median time measured: 0.1 is 10 % too long.
  double error() const;
  /// How many times as fast as the library the program was measured to be: the ratio of median
  /// times. Nothing where the library was not measured.
  std::optional<double> measured_speedup() const;
};

/// Predictions and measurements of the same questions.
struct Comparisons {
  std::vector<Comparison> rows;  ///< what both answered
  Answers measured;              ///< all that was measured, and what was skipped

  /// The median of the errors' sizes among messages of at least that many bytes; nothing when there
  /// are none.
  std::optional<double> median_error(std::int64_t min_bytes = 0) const;
  /// The same of those rows whose machine was as probed.
  std::optional<double> median_error_as_probed(std::int64_t min_bytes = 0) const;
  /// Whether anybody looked if the machine still was as probed.
  bool are_checked() const;
  /// Wrong elements of the library's results.
  std::int64_t wrong_of_library() const;
};

/// From this size on bandwidths decide, and the median error is given by itself.
inline constexpr std::int64_t kLargeMessage = std::int64_t{16} << 20;

/// Predicts every question and, where that is possible, measures it, and with `measure_library`, if
/// there is one, the library's own collective. `answered` is told of every measurement, and is
/// given the row where both have answered, null where not. `check`, if there is one, is called
/// before the first measurement and after each. Throws Error{unsupported} where the
/// library has nothing that answers.
Comparisons compare_table(
    const std::vector<Query>& queries, const AskQuery& predict, const AskQuery& measure,
    const std::function<void(const Outcome& measured, const Comparison* row)>& answered,
    const AskQuery& measure_library = {}, const FigureCheck& check = {});

}  // namespace espalier
