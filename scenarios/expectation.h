// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"
#include "scenarios/study.h"
#include "scenarios/training_study.h"

namespace espalier {

/// Which figure of an answer is compared. `link_share`: what crosses one direction of a link, in
/// messages; `used_links`: how many directions of links carry anything.
/// `speedup`: over NCCL (see speedup_of). Those from `iteration_s` on
/// are for training (see TrainingOutcome); `exposed_share`: the share of an iteration that is
/// exposed communication.
enum class Measure {
  time_s,
  algbw_gbps,
  busbw_gbps,
  bound_gbps,
  fraction,
  link_share,
  used_links,
  benchmark_s,
  speedup,
  iteration_s,
  communication_s,
  exposed_s,
  exposed_share,
  hidden_s,
  samples_per_s,
  efficiency
};

/// How our figure compares with the expected one, best first. `direction`:
/// it shows the effect (is in the given range or order) but not the paper's
/// figure (within the tolerance, by the factor), or the paper gives none.
enum class Verdict { reproduced, direction, unexplained };

std::string_view to_string(Measure measure);
std::string_view to_string(Verdict verdict);  ///< "reproduced", "direction only", ...
/// Those of the answers of a collective, and those of training.
const std::vector<Measure>& collective_measures();
const std::vector<Measure>& training_measures();

/// One figure among the answers of a block.
struct Figure {
  std::size_t table = 0;  ///< of the block
  std::size_t query = 0;  ///< of the table
  std::string link;       ///< of `link_share`, as reports name it
};

/// What a paper says: a figure, or an interval.
struct PaperFigure {
  double minimum = 0;
  double maximum = 0;    ///< the same as `minimum` for a figure
  double tolerance = 0;  ///< relative; of each end

  bool is_interval() const { return minimum != maximum; }
  bool admits(double ours) const;
};

/// A figure, or the ratio of two.
struct ExpectedFigure {
  Figure of;
  std::optional<Figure> over;  ///< the ratio of `of` to this is meant
  std::optional<PaperFigure> paper;
  std::optional<double> at_least;  ///< the range that shows the direction
  std::optional<double> at_most;
};

/// Figures in ascending order.
struct ExpectedOrder {
  std::vector<Figure> figures;   ///< two or more
  std::optional<double> factor;  ///< each is at least this many times the one before; above 1
};

/// What a study expects of its answers.
struct ExpectedResult {
  std::string title;
  std::string claim;  ///< of a paper, such as "S000-c", or empty
  std::string note;   ///< why it comes out so
  Measure measure = Measure::algbw_gbps;
  std::variant<ExpectedFigure, ExpectedOrder> result;
  Verdict verdict = Verdict::reproduced;  ///< the one expected
  Location where;

  /// Whether a paper claims it; otherwise it is a check of our own, which holds (`reproduced`) or
  /// does not.
  bool is_of_paper() const;
  /// The best verdict it can have: a claim is reproduced by its figure or factor, and without one
  /// it has a direction only.
  Verdict best_verdict() const;
};

/// How an expectation came out.
struct Judgement {
  /// The figure or the ratio; for an order, the minimum ratio of a
  /// figure to the one before. Nothing if there is no such figure.
  std::optional<double> ours;
  std::vector<double> figures;  ///< of an order
  std::string missing;          ///< why there is no figure
  Verdict verdict = Verdict::unexplained;

  bool as_expected(const ExpectedResult& expectation) const {
    return ours && verdict == expectation.verdict;
  }
};

/// Compares. `answers` holds an outcome for each query of each table of the block; null where none
/// ran. \pre the measure is one of such answers.
Judgement judge(const ExpectedResult& expectation,
                const std::vector<std::vector<const Outcome*>>& answers);
Judgement judge(const ExpectedResult& expectation,
                const std::vector<std::vector<const TrainingOutcome*>>& answers);

}  // namespace espalier
