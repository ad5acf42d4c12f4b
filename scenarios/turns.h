// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

/// What becomes of a size of which nothing is answered when the time is up.
enum class LateQuestions : std::uint8_t { skipped, asked };

/// Answers to the questions of one table by their places, without programs, where time is limited:
/// first one of every size, the smallest and the largest before those between; then what NCCL does
/// with each, where questions are against it; then algorithm by algorithm, beginning with those
/// that are forecast to be fast and to take little time (forecast.h). Each has its share of what is
/// left. What comes too late, or would take longer than what is left, is not asked: `skipped` is
/// kNoTimeLeft. Late questions of a size without any answer are asked or not as `late` says, but
/// something is always answered. Throws as `Study::ask` does. The study is borrowed.
std::vector<Outcome> answer_in_turns(Study& study, const std::vector<Query>& queries,
                                     LateQuestions late, const SweepProgress& progress = {});

/// Of limited time that the comparisons of the tuner may take; the rest is for what is shown of its
/// choices.
inline constexpr double kTimeToCompare = 2.0 / 3;

/// Predictions one after the other for some comparisons of `candidates` for `sizes`, where time is
/// limited: each has its share of what is left. Candidates that promise most by what is known come
/// first, then those of which nothing is known, as in `answer_in_turns`. What comes too late is
/// skipped for kNoTimeLeft; but of every size something that is possible is predicted in each call,
/// and a candidate of which nothing is known is either predicted for all sizes asked at once or for
/// none of them. The study is borrowed.
PredictAll predict_in_turns(Study& study, std::size_t candidates, std::size_t sizes,
                            const SweepProgress& progress = {});

}  // namespace espalier
