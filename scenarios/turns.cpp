// SPDX-License-Identifier: Apache-2.0
#include "scenarios/turns.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>

#include "scenarios/describe.h"
#include "scenarios/forecast.h"

namespace espalier {

namespace {

/// Who answers the questions of a table: see answer_in_turns.
class TableInTurns {
 public:
  TableInTurns(Study& study, const std::vector<Query>& queries, LateQuestions late,
               const SweepProgress& progress)
      : study_(study),
        queries_(queries),
        late_(late),
        progress_(progress),
        forecasts_(study),
        answers_(queries.size()) {
    for (std::size_t place = 0; place < queries_.size(); ++place) {
      places_of_[queries_[place].size_bytes].push_back(place);
    }
    std::vector<std::int64_t> sizes;
    for (auto& [size_bytes, places] : places_of_) {
      sizes.push_back(size_bytes);
      std::ranges::stable_sort(places, {}, [&](std::size_t place) { return order(place); });
      if (needs_baseline(queries_[places.front()])) ++left_;
    }
    for (const std::vector<std::size_t>& level : bisection_levels(sizes.size())) {
      for (const std::size_t one : level) sizes_.push_back(sizes[one]);
    }
    left_ += queries_.size();
  }

  std::vector<Outcome> answer() {
    for (const std::int64_t size_bytes : sizes_) answer_first(size_bytes);
    for (const std::int64_t size_bytes : sizes_) find_baseline(size_bytes);
    for (const std::size_t place : rest()) take(place, false);
    for (std::size_t place = 0; place < answers_.size(); ++place) compare(place);
    return std::move(answers_);
  }

 private:
  std::tuple<std::size_t, int, double> order(std::size_t place) {
    return forecasts_.of(queries_[place]).order();
  }

  static bool needs_baseline(const Query& query) {
    return query.against_nccl && baseline_query(query).has_value();
  }

  TimeLimit next_share() {
    const std::size_t parts = std::max<std::size_t>(left_, 1);
    left_ = parts - 1;
    return TimeLimit::share_of_rest(parts);
  }

  /// Something that is possible, of all that there is for the size.
  void answer_first(std::int64_t size_bytes) {
    for (const std::size_t place : places_of_.at(size_bytes)) {
      take(place, !has_answer_ || late_ == LateQuestions::asked);
      if (answers_[place].ran() || answers_[place].skipped == kNoTimeLeft) return;
    }
  }

  void find_baseline(std::int64_t size_bytes) {
    const Query& query = queries_[places_of_.at(size_bytes).front()];
    if (!needs_baseline(query)) return;
    const double takes_s = forecasts_.of(*baseline_query(query)).takes_s;
    const bool has_time = time_left_s() > 0 && takes_s <= time_left_s();
    const TimeLimit share = next_share();
    if (has_time) baselines_.emplace(size_bytes, study_.baseline(query));
  }

  /// The others: the sizes of one algorithm one after the other.
  std::vector<std::size_t> rest() {
    std::map<std::string, std::tuple<std::size_t, int, double>> order_of;  // at the largest size
    std::vector<std::size_t> places;
    for (const std::int64_t size_bytes : sizes_) {
      for (const std::size_t place : places_of_.at(size_bytes)) {
        if (!asked_.contains(place)) places.push_back(place);
      }
    }
    for (const auto& [size_bytes, all] : places_of_) {
      for (const std::size_t place : all) order_of[queries_[place].algorithm] = order(place);
    }
    std::ranges::stable_sort(places, {}, [&](std::size_t place) {
      const std::string& algorithm = queries_[place].algorithm;
      return std::tuple(order_of.at(algorithm), algorithm);
    });
    return places;
  }

  void take(std::size_t place, bool is_needed) {
    Query query = queries_[place];
    asked_.insert(place);
    const TimeLimit share = next_share();
    Outcome& answer = answers_[place];
    if (!is_needed && !has_time_for(query)) {
      answer.query = query;
      answer.skipped = kNoTimeLeft;
      answer.budget = share.granted();
      return;
    }
    const std::string label = progress_label(query);
    progress_.waiting(label);
    query.against_nccl = false;
    answer = study_.ask(query);
    answer.program.reset();
    progress_.received(label);
    has_answer_ = has_answer_ || answer.ran();
  }

  bool has_time_for(const Query& query) {
    if (is_time_up()) return false;
    if (forecasts_.of(query).takes_s <= time_left_s()) return true;
    note_cut_short();
    return false;
  }

  void compare(std::size_t place) {
    const Query& query = queries_[place];
    Outcome& answer = answers_[place];
    answer.query = query;
    if (!answer.report.simulated || !needs_baseline(query)) return;
    const auto known = baselines_.find(query.size_bytes);
    answer.nccl_left_out = known == baselines_.end();
    if (!answer.nccl_left_out) answer.nccl = known->second;
  }

  Study& study_;
  const std::vector<Query>& queries_;
  const LateQuestions late_;
  const SweepProgress& progress_;
  Forecasts forecasts_;
  std::vector<Outcome> answers_;
  std::map<std::int64_t, std::vector<std::size_t>> places_of_;  ///< by size, in order of forecasts
  std::vector<std::int64_t> sizes_;                             ///< in turn
  std::map<std::int64_t, std::optional<Baseline>> baselines_;
  std::set<std::size_t> asked_;
  std::size_t left_ = 0;  ///< of answers and baselines
  bool has_answer_ = false;
};

}  // namespace

std::vector<Outcome> answer_in_turns(Study& study, const std::vector<Query>& queries,
                                     LateQuestions late, const SweepProgress& progress) {
  return TableInTurns(study, queries, late, progress).answer();
}

namespace {

/// The places of the queries: those that promise most by what is known, compared with the best
/// promise for the size; then algorithms of which nothing is known, by their forecasts for the
/// largest size, those of one algorithm one after the other.
std::vector<std::size_t> places_in_turn(Study& study, Forecasts& forecasts,
                                        const std::vector<WantedTime>& wanted) {
  std::vector<double> longest_s;
  std::map<std::int64_t, double> best_s;                                // by size
  std::map<std::string, std::tuple<std::size_t, int, double>> unknown;  // by algorithm
  for (const auto& [query, worthwhile_s] : wanted) {
    longest_s.push_back(study.longest_time_s(query));
    const auto [best, is_new] = best_s.try_emplace(query.size_bytes, longest_s.back());
    best->second = std::min(best->second, longest_s.back());
    if (std::isinf(longest_s.back())) unknown[query.algorithm] = forecasts.of(query).order();
  }
  const auto key = [&](std::size_t place) {
    const Query& query = wanted[place].query;
    const double least_s = best_s.at(query.size_bytes);
    const double share = least_s > 0 ? longest_s[place] / least_s : 1;
    const auto order = unknown.find(query.algorithm);
    if (order == unknown.end()) return std::tuple(std::tuple<std::size_t, int, double>(), share);
    // After all that are known; and algorithms one after the other.
    auto [compares, magnitude, time_s] = order->second;
    return std::tuple(std::tuple(compares + 1, magnitude, time_s), 0.0);
  };
  std::vector<std::size_t> places(wanted.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, [&](std::size_t a, std::size_t b) {
    const auto a_key = key(a);
    const auto b_key = key(b);
    if (a_key != b_key) return a_key < b_key;
    const std::string& algorithm = wanted[a].query.algorithm;
    return unknown.contains(algorithm) && algorithm < wanted[b].query.algorithm;
  });
  return places;
}

}  // namespace

PredictAll predict_in_turns(Study& study, std::size_t candidates, std::size_t sizes,
                            const SweepProgress& progress) {
  // All candidates at both ends, then about one for every size.
  std::size_t left = 2 * candidates + sizes;
  const auto forecasts = std::make_shared<Forecasts>(study);
  return [&study, progress, left, forecasts](const std::vector<WantedTime>& wanted) mutable {
    std::vector<Prediction> predictions(wanted.size());
    std::set<std::string> begun;
    std::set<std::int64_t> answered;  // sizes
    for (const std::size_t place : places_in_turn(study, *forecasts, wanted)) {
      const Query& query = wanted[place].query;
      const bool is_known = std::isfinite(study.longest_time_s(query));
      const TimeLimit share = TimeLimit::share_of_rest(std::max<std::size_t>(left, 1));
      if (left > 0) --left;
      const bool is_needed =
          begun.contains(query.algorithm) || !answered.contains(query.size_bytes);
      const bool fits = is_known || forecasts->of(query).takes_s <= time_left_s();
      if (!is_needed && (is_time_up() || !fits)) {
        note_cut_short();
        predictions[place].skipped = kNoTimeLeft;
        continue;
      }
      const std::string label = progress_label(query);
      progress.waiting(label);
      predictions[place] = study.predict(query, wanted[place].worthwhile_s);
      progress.received(label);
      if (!is_known) begun.insert(query.algorithm);
      if (!predictions[place].skipped) answered.insert(query.size_bytes);
    }
    return predictions;
  };
}

}  // namespace espalier
