// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/time_limit.h"
#include "scenarios/study.h"
#include "scenarios/study_workers.h"
#include "scenarios/tuner.h"

// How several questions share the time that searches have (see TimeLimit).

namespace espalier {

/// Why a question that got no time has no answer.
inline constexpr const char* kNoTimeLeft = "no time was left for it";

/// Whether to answer takes long where others may not: the algorithm is planned, or chosen.
bool is_costly(Study& study, const std::string& algorithm);

/// Where time is limited, the questions of each message with costly algorithms after those with
/// others, which leave more to them than they would to these.
std::vector<Query> cheap_first(Study& study, std::vector<Query> queries);

/// Takes questions in turn: each has its share of what is left of the time, so that what one leaves
/// over is for those after it. One whose turn comes too late is not asked, unless nothing has been
/// answered yet.
class Turns {
 public:
  explicit Turns(std::size_t questions) : left_(questions) {}

  /// `ask` answers the query with an Outcome or a TrainingOutcome.
  template <class AnyQuery, class Ask>
  auto take(const AnyQuery& query, const Ask& ask) -> decltype(ask()) {
    const TimeLimit share = TimeLimit::share_of_rest(std::max<std::size_t>(left_, 1));
    if (left_ > 0) --left_;
    if (has_answer_ && is_time_up()) {
      decltype(ask()) unasked;
      unasked.query = query;
      unasked.skipped = kNoTimeLeft;
      unasked.budget = share.granted();
      return unasked;
    }
    auto answer = ask();
    has_answer_ = has_answer_ || answer.ran();
    return answer;
  }

 private:
  std::size_t left_;
  bool has_answer_ = false;
};

/// Predictions one after the other for some comparisons of `candidates` for `sizes`, where time is
/// limited: each has its share of what is left, and those with costly algorithms come last. What
/// comes too late is skipped for kNoTimeLeft; but of every size something that is possible is
/// predicted, and a candidate is either predicted for all sizes asked at once or for none of them.
/// The study is borrowed.
PredictAll predict_in_turns(Study& study, std::size_t candidates, std::size_t sizes,
                            const SweepProgress& progress = {});

}  // namespace espalier
