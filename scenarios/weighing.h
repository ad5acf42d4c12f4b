// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include "algorithms/algorithm.h"
#include "scenarios/study.h"

namespace espalier {

/// How values of weighed parameters (see AlgorithmParameter) are tried.
struct WeighedBy {
  /// What is built for a choice; null where it does not apply.
  std::function<std::shared_ptr<const Program>(const AlgorithmChoice&)> program;
  /// Whether lanes would wait for each other.
  std::function<bool(const Program&)> is_crowded;
  /// Where it takes longer than what is worthwhile, an upper bound will do.
  std::function<Prediction(const AlgorithmChoice&, double worthwhile_s)> predict;
  /// What is slower is of no interest: for the best of it as well, an upper bound will do. A plan
  /// is written in other ways only if it is near this as well, which is a heuristic: none is known
  /// that gains more by that (Prediction::is_bounded).
  double worthwhile_s = std::numeric_limits<double>::infinity();
  std::optional<AlgorithmChoice> as_before = {};  ///< what was best of a like message
};

/// What plans there are, and then how those near the best are written: both matter, and a plan that
/// is a little slower as it is usually written may be the fastest when it is written otherwise.
/// Values that make the same program are tried once; of equally fast ones the default is taken, and
/// then the first. Where time is limited, `as_before` comes first and then the defaults. Else the
/// defaults come after the first parameter's other values: plans for fewer links have fewer ops,
/// and tell soon whether one for all links is worthwhile.
Prediction weigh(const AlgorithmChoice& choice, const WeighedBy& by);

}  // namespace espalier
