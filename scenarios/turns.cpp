// SPDX-License-Identifier: Apache-2.0
#include "scenarios/turns.h"

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "scenarios/chooser.h"
#include "scenarios/describe.h"

namespace espalier {

bool is_costly(Study& study, const std::string& algorithm) {
  return is_chooser(algorithm) || study.choice(algorithm).algorithm->plan != nullptr;
}

std::vector<Query> cheap_first(Study& study, std::vector<Query> queries) {
  if (std::isinf(time_left_s())) return queries;
  for (auto first = queries.begin(); first != queries.end();) {
    const auto last = std::find_if(first, queries.end(), [&](const Query& query) {
      return query.size_bytes != first->size_bytes;
    });
    std::stable_partition(first, last,
                          [&](const Query& query) { return !is_costly(study, query.algorithm); });
    first = last;
  }
  return queries;
}

namespace {

/// The places of the queries: costly ones last, those of one algorithm one after the other.
std::vector<std::size_t> places_in_turn(Study& study, const std::vector<Query>& queries) {
  std::map<std::string, std::pair<bool, std::size_t>> rank;  // of the algorithm
  for (const Query& query : queries) {
    rank.try_emplace(query.algorithm, is_costly(study, query.algorithm), rank.size());
  }
  std::vector<std::size_t> places(queries.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, {},
                           [&](std::size_t place) { return rank.at(queries[place].algorithm); });
  return places;
}

}  // namespace

PredictAll predict_in_turns(Study& study, std::size_t candidates, std::size_t sizes,
                            const SweepProgress& progress) {
  // All candidates at both ends, then about one for every size.
  std::size_t left = 2 * candidates + sizes;
  std::set<std::int64_t> answered;  // sizes
  return [&study, progress, left, answered](const std::vector<Query>& queries) mutable {
    std::vector<Prediction> predictions(queries.size());
    std::set<std::string> begun;
    for (const std::size_t place : places_in_turn(study, queries)) {
      const Query& query = queries[place];
      const TimeLimit share = TimeLimit::share_of_rest(std::max<std::size_t>(left, 1));
      if (left > 0) --left;
      const bool is_needed =
          begun.contains(query.algorithm) || !answered.contains(query.size_bytes);
      if (!is_needed && is_time_up()) {
        predictions[place].skipped = kNoTimeLeft;
        continue;
      }
      const std::string label = progress_label(query);
      progress.waiting(label);
      predictions[place] = study.predict(query);
      progress.received(label);
      begun.insert(query.algorithm);
      if (!predictions[place].skipped) answered.insert(query.size_bytes);
    }
    return predictions;
  };
}

}  // namespace espalier
