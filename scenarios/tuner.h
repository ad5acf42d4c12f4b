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
/// What a portfolio is the fastest of: its plan itself and the rest of the catalogue.
/// \pre `is_portfolio(choice)`
std::vector<std::string> portfolio_candidates(const AlgorithmChoice& choice, Collective collective);
/// What a query chooses among by simulating: nothing where it does not, as a table of choices.
std::optional<std::vector<std::string>> candidates_of(Study& study, const Query& query);

/// A candidate, and what is predicted of it.
struct TuningChoice {
  std::string algorithm;  ///< the candidate; the prediction says what is left open
  Prediction prediction;
};

/// The fastest candidate for a message; times within the accuracy of the simulator are equal, and
/// the earlier candidate wins. `question` holds machine, collective, size and perhaps a chunk size.
/// Candidates that are ruled out by what is already known (Study::shortest_time_s) are not
/// simulated. Returns nothing if none applies. \pre the study has a simulator; the candidates serve
/// the collective.
std::optional<TuningChoice> choose_algorithm(Study& study, const Query& question,
                                             const std::vector<std::string>& candidates);

/// Predicts questions, and returns the answers in their order. Throws what predicting the first of
/// them throws that can't be predicted.
using PredictAll = std::function<std::vector<Prediction>(const std::vector<Query>& queries)>;
/// One after the other.
PredictAll predict_with(Study& study);

/// The fastest candidate for every size, and what else was found out.
struct SizeChoices {
  std::vector<std::optional<TuningChoice>> choices;  ///< by size; nothing: none applies
  std::vector<Prediction> smallest;                  ///< of every candidate, for the smallest size
  std::vector<Prediction> largest;                   ///< and for the largest
};

/// Chooses as `choose_algorithm` does, for every size. Predicts all candidates at both ends, then
/// for the middle of every stretch those that its ends do not rule out, and so on: in batches that
/// do not depend on who predicts, and so neither does the choice. \pre sizes ascend, each once;
/// neither list is empty
SizeChoices choose_by_size(const Query& question, const std::vector<std::int64_t>& sizes,
                           const std::vector<std::string>& candidates,
                           const PredictAll& predict_all,
                           const std::function<void(std::int64_t size_bytes)>& on_chosen = {});

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
};

/// Compares all candidates at the smallest and the largest size, then chooses for every size (any
/// order, repetitions allowed), of which `on_chosen` is told. Throws Error{unsupported} with all
/// reasons when no candidate applies. \pre as `choose_algorithm`; neither list is empty.
Tuning tune(Study& study, const Query& question, std::vector<std::int64_t> sizes,
            const std::vector<std::string>& candidates, const PredictAll& predict_all,
            const std::function<void(std::int64_t size_bytes)>& on_chosen = {});

}  // namespace espalier
