// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace espalier {

/// Positive constants of a model that are to be fitted to measured figures, those that should
/// rather be fitted first. Everything is relative: errors are logarithms of predicted / measured,
/// slopes say by how many percent a prediction grows with one percent of a constant.
struct LeastSquaresProblem {
  std::vector<double> start;  ///< the constants as they are, each positive and within its limits
  std::vector<double> lower;  ///< limits, positive
  std::vector<double> upper;
  /// How far the right constants may well be from those as they are: 0.02 is 2 %. Empty, or 0:
  /// nothing is known of that.
  std::vector<double> spread;
  /// The errors of all measurements with these constants.
  std::function<std::vector<double>(const std::vector<double>& constants)> errors;
  /// d error / d log(constant `index`) of all measurements where `errors` was asked last.
  std::function<std::vector<double>(const std::vector<double>& constants, std::size_t index)>
      slopes;
  /// Whether the constants found so far must suffice: asked before each of the others. Empty:
  /// never.
  std::function<bool()> is_over;
};

enum class Determined {
  yes,
  at_limit,    ///< the measurements would have it beyond what is possible
  no_effect,   ///< no prediction depends on it
  uncertain,   ///< its interval is too wide to be of use: it keeps its value
  one_time,    ///< the same, because a single measurement says what it is
  confounded,  ///< the same, because another constant has the same effect
  not_tried,   ///< the same, because it was over before its effect was known
};

struct FittedValue {
  double value = 0;
  Determined determined = Determined::no_effect;
  /// 95 % interval, of those that are determined. It counts the scatter of the errors, assumes that
  /// these are independent of each other, and holds what the measurements alone say, whatever
  /// LeastSquaresProblem::spread is.
  double low = 0;
  double high = 0;
  std::optional<std::size_t> confounded_with;  ///< index of the constant with the same effect
};

struct LeastSquaresFit {
  std::vector<FittedValue> values;  ///< one for each constant
  std::vector<double> errors;       ///< of the measurements, with these values; once it is cut
                                    ///< short, partly by slopes
  /// How far each measurement draws the prediction for itself to it, from 0 to 1: without it among
  /// those fitted, its error would be 1 / (1 - leverage) times as large.
  std::vector<double> leverage;
  double scatter = 0;         ///< of the errors: 0.05 is 5 %, robust against outliers
  bool is_cut_short = false;  ///< LeastSquaresProblem::is_over said so
};

/// Intervals wider than this share of a value to each side say too little to change a constant,
/// unless they exclude the value that it had: estimate.
inline constexpr double kWidestInterval = 0.25;

/// The constants that the measurements determine: those with the least sum of Huber's loss of the
/// errors (Annals of Mathematical Statistics 35, 1964), found by the method of Levenberg and
/// Marquardt with weights that are renewed in each step. What is not determined is taken out, the
/// most uncertain constant first (of two with the same effect the later one), and keeps its value.
/// A constant of which something is known (LeastSquaresProblem::spread) moves only as far as the
/// measurements demand beyond their scatter: what its change costs grows at first with its square,
/// and ends at the gain of which one can be sure, so that what is really different is let go.
/// Deterministic.
/// \pre there are at least kMinSpare more measurements than constants, and at least one constant
LeastSquaresFit least_squares(const LeastSquaresProblem& problem);

/// So many measurements more than constants, or the scatter is unknown.
inline constexpr std::size_t kMinSpare = 3;

/// The quantile 0.975 of Student's distribution. \pre degrees >= 3
double student_quantile(double degrees);

}  // namespace espalier
