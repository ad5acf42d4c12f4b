// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/study.h"
#include "scenarios/tuning_table.h"

namespace espalier {

/// The algorithm by itself and with every combination of the values to try for its parameters:
/// "ring", "ring:directions=2". Parameters that every simulation tries anyway are left open.
std::vector<std::string> variants(const Algorithm& algorithm);
/// The variants of every algorithm for the collective: the candidates of the tuner.
std::vector<std::string> tuning_candidates(Collective collective);

/// The fastest candidate for a message; times within the accuracy of the simulator are equal, and
/// the earlier candidate wins. `question` holds machine, collective, size and perhaps a chunk size.
/// Candidates that are ruled out by what is already known (Study::shortest_time_s) are not
/// simulated. Returns nothing if none applies. \pre the study has a simulator; the candidates serve
/// the collective.
struct TuningChoice {
  std::string algorithm;  ///< the candidate; the prediction says what is left open
  Prediction prediction;
};
std::optional<TuningChoice> choose_algorithm(Study& study, const Query& question,
                                             const std::vector<std::string>& candidates);

/// A candidate as a point between small and large messages.
struct FrontPoint {
  std::string algorithm;
  double latency_s = 0;   ///< time of the smallest message
  double algbw_gbps = 0;  ///< of the largest message
  /// Whether no other candidate is as good in both and better in one.
  bool on_front = false;
};

struct Tuning {
  TuningTable table;
  /// Per size, ascending: what the rows of the table were joined from.
  std::vector<TuningRow> choices;
  /// Fastest for small messages first. Of variants of one algorithm only those that no other
  /// variant beats in both.
  std::vector<FrontPoint> front;
  std::vector<std::pair<std::string, std::string>> skipped;  ///< candidate and why
  std::vector<std::string> unasked;        ///< candidates that no time was left for
  std::optional<GrantedTime> budget = {};  ///< of all comparisons, where their time was limited
};

/// Compares all candidates at the smallest and the largest size, then chooses for every size (any
/// order, repetitions allowed). `on_step` is told what comes next: every candidate, then
/// every size. Where time is limited (see TimeLimit), each has its share of what is left, and
/// candidates that get none are not compared. Throws Error{unsupported} with all reasons when no
/// candidate applies. \pre as `choose_algorithm`; neither list is empty.
Tuning tune(Study& study, const Query& question, std::vector<std::int64_t> sizes,
            const std::vector<std::string>& candidates,
            const std::function<void(const std::string& what)>& on_step = {});

}  // namespace espalier
