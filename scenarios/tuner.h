// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/chunk_search.h"
#include "scenarios/study.h"
#include "scenarios/tuning_table.h"

namespace espalier {

/// The algorithm by itself and with every combination of the values to try for its parameters:
/// "ring", "ring:directions=2". Parameters that every simulation tries anyway are left open.
std::vector<std::string> variants(const Algorithm& algorithm);
/// The same of an algorithm by its name; whatever else names one stands for itself.
std::vector<std::string> variants_of(const std::string& word);
/// What variants of one algorithm have in common.
std::string name_of_variants(const std::string& algorithm);
/// The variants of every algorithm for the collective: the candidates of the tuner.
std::vector<std::string> tuning_candidates(Collective collective);
/// What a portfolio is the fastest of: its plan itself and the rest of the catalogue.
/// \pre `is_portfolio(choice)`
std::vector<std::string> portfolio_candidates(const AlgorithmChoice& choice, Collective collective);
/// What a query chooses among by simulating: nothing where it does not, as a table of choices.
std::optional<std::vector<std::string>> candidates_of(Study& study, const Query& query);

/// The least time of a message of `wanted_bytes` by that of one of some bytes sent in the same way:
/// a larger one takes no less, and part of one at least its share of the time, unless the machine
/// has working sets (Topology::has_working_sets).
double least_by(double time_s, std::int64_t bytes, std::int64_t wanted_bytes,
                const Topology& machine);

/// What a message of some bytes promises of one of `wanted_bytes` sent in the same way: a larger
/// one takes no less, and several messages one after the other are a larger one. Infinite for
/// messages more than 16 times as small, which are best sent in another way.
double promised_s(double time_s, std::int64_t bytes, std::int64_t wanted_bytes);

/// A candidate, and what is predicted of it.
struct TuningChoice {
  std::string algorithm;  ///< the candidate; the prediction says what is left open
  Prediction prediction;
};

/// The fastest candidate for a message; times within the accuracy of the simulator are equal, and
/// the earlier candidate wins. `question` holds machine, collective, size and perhaps a chunk size.
/// Candidates that are ruled out by what is already known (Study::shortest_time_s) are not
/// simulated. Where time is limited, those that promise most come first (Study::longest_time_s),
/// and then those of which nothing is known, by their forecasts. Returns nothing if none applies.
/// \pre the study has a simulator; the candidates serve the collective.
std::optional<TuningChoice> choose_algorithm(Study& study, const Query& question,
                                             const std::vector<std::string>& candidates);

/// A question to predict, and the time up to which the answer is of interest: see Study::predict.
struct WantedTime {
  Query query;
  double worthwhile_s = kAnyTime;
};

/// Predicts questions, and returns the answers in their order. Throws what predicting the first of
/// them throws that can't be predicted.
using PredictAll = std::function<std::vector<Prediction>(const std::vector<WantedTime>& wanted)>;
/// One after the other.
PredictAll predict_with(Study& study);

/// Chooses as `choose_algorithm` does, for sizes one after the other or side by side. What it asks
/// to be predicted, and so what it chooses, does not depend on who predicts.
class SizeChooser {
 public:
  /// \pre sizes ascend, each once; neither list is empty
  SizeChooser(Query question, std::vector<std::int64_t> sizes, std::vector<std::string> candidates,
              std::shared_ptr<const Topology> machine);

  /// Chooses for some sizes, by their places, of those that nothing was chosen for. Candidates that
  /// are ruled out by what earlier calls found out are not predicted, and others only as far as it
  /// takes to find out that they are slower than those that were chosen for neighbours.
  void choose(const std::vector<std::size_t>& places, const PredictAll& predict_all);
  /// Chooses for the smallest and the largest size, before any other. All candidates are predicted
  /// for the smallest, and for the largest those that no other variant of the same algorithm beats
  /// at both; where time is limited, all for both.
  void choose_ends(const PredictAll& predict_all);

  /// \pre was chosen for
  std::optional<TuningChoice> choice(std::size_t place) const;
  bool has_chosen(std::size_t place) const { return chosen_[place].is_known; }
  /// \pre has_predicted
  const Prediction& prediction(std::size_t candidate, std::size_t place) const {
    return known_[candidate].at(place);
  }

  /// Not if it is only known to be slower than others.
  bool has_predicted(std::size_t candidate, std::size_t place) const {
    return known_[candidate].contains(place);
  }

  /// Whether it was, for any size; not if there was no time.
  bool was_predicted(std::size_t candidate) const;

  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  const std::vector<std::string>& candidates() const { return candidates_; }

 private:
  struct Chosen {
    bool is_known = false;
    std::optional<std::size_t> candidate;  ///< nothing: none applies
  };
  /// By their places in the lists.
  struct Asked {
    std::size_t candidate = 0;
    std::size_t size = 0;
    double worthwhile_s = kAnyTime;
  };

  void predict(const std::vector<Asked>& asked, const PredictAll& predict_all);
  void predict_variants(const PredictAll& predict_all);
  double time_s(std::size_t candidate, std::size_t size) const;
  double least_s(std::size_t candidate, std::size_t size) const;
  std::optional<std::size_t> most_promising(std::size_t size) const;
  std::optional<std::size_t> best_at(std::size_t size) const;
  std::vector<std::size_t> neighbours(std::size_t size) const;

  const Query question_;
  const std::vector<std::int64_t> sizes_;
  const std::vector<std::string> candidates_;
  const std::shared_ptr<const Topology> machine_;
  std::vector<std::map<std::size_t, Prediction>> known_;  ///< by candidate, then size
  /// The same of those that were not followed to their end: they take longer than this.
  std::vector<std::map<std::size_t, double>> slower_than_;
  std::vector<Chosen> chosen_;  ///< by size
};

/// Places of so many sizes: both ends, then the middle of every stretch, and so on. What is known
/// on both sides of a size rules out most candidates there.
std::vector<std::vector<std::size_t>> bisection_levels(std::size_t count);

/// Chooses for all sizes: at both ends, then for the middle of every stretch, and so on.
/// `on_chosen` is told of each.
void choose_all(SizeChooser& chooser, const PredictAll& predict_all,
                const std::function<void(std::int64_t size_bytes)>& on_chosen = {});

/// A candidate as a point between small and large messages.
struct FrontPoint {
  std::string algorithm;
  double latency_s = 0;   ///< time of the smallest message
  double algbw_gbps = 0;  ///< of the largest message
  /// Whether no other candidate is as good in both and better in one.
  bool on_front = false;
};

/// What is predicted of a candidate, at the sizes where it was not ruled out, whether before or
/// while it was simulated.
struct CandidateTimes {
  std::string algorithm;
  std::vector<TuningRow> times;  ///< by size, ascending; the algorithm with nothing left open
};

struct Tuning {
  TuningTable table;
  /// Per size, ascending: what the rows of the table were joined from.
  std::vector<TuningRow> choices;
  /// Fastest for small messages first. Of variants of one algorithm only those that no other
  /// variant beats in both.
  std::vector<FrontPoint> front;
  std::vector<CandidateTimes> candidates;                    ///< of which there are predictions
  std::vector<std::pair<std::string, std::string>> skipped;  ///< candidate and why
  std::vector<std::string> unasked;        ///< candidates that no time was left for
  std::optional<GrantedTime> budget = {};  ///< of all comparisons, where their time was limited
};

/// The choices as questions: what they promise is to be verified, simulated again and judged.
std::vector<Query> chosen_queries(const Query& question, const Tuning& tuning);

/// Compares all candidates at the smallest and the largest size (SizeChooser::choose_ends), then
/// chooses for every size (any order, repetitions allowed), of which `on_chosen` is told.
/// Candidates that `predict_all` had no time for (see predict_in_turns) are not compared. Throws
/// Error{unsupported} with all reasons when no candidate applies. \pre as `choose_algorithm`;
/// neither list is empty.
Tuning tune(Study& study, const Query& question, std::vector<std::int64_t> sizes,
            const std::vector<std::string>& candidates, const PredictAll& predict_all,
            const std::function<void(std::int64_t size_bytes)>& on_chosen = {});

}  // namespace espalier
