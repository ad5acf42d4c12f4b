// SPDX-License-Identifier: Apache-2.0
// The fastest candidate for every size of a message: see SizeChooser.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "core/check.h"
#include "core/time_limit.h"
#include "scenarios/tuner.h"
#include "scenarios/turns.h"

namespace espalier {

std::vector<std::vector<std::size_t>> bisection_levels(std::size_t count) {
  std::vector<std::vector<std::size_t>> levels = {{0}};
  if (count > 1) levels.front().push_back(count - 1);
  std::vector<std::pair<std::size_t, std::size_t>> stretches = {{0, count - 1}};
  while (!stretches.empty()) {
    std::vector<std::size_t> middles;
    std::vector<std::pair<std::size_t, std::size_t>> halves;
    for (const auto& [first, last] : stretches) {
      if (last - first < 2) continue;
      const std::size_t middle = first + (last - first) / 2;
      middles.push_back(middle);
      halves.emplace_back(first, middle);
      halves.emplace_back(middle, last);
    }
    if (!middles.empty()) levels.push_back(std::move(middles));
    stretches = std::move(halves);
  }
  return levels;
}

SizeChooser::SizeChooser(Query question, std::vector<std::int64_t> sizes,
                         std::vector<std::string> candidates,
                         std::shared_ptr<const Topology> machine)
    : question_(std::move(question)),
      sizes_(std::move(sizes)),
      candidates_(std::move(candidates)),
      machine_(std::move(machine)),
      known_(candidates_.size()),
      chosen_(sizes_.size()) {
  CHECK(!sizes_.empty() && !candidates_.empty());
}

void SizeChooser::choose(const std::vector<std::size_t>& places, const PredictAll& predict_all) {
  // What is best on both sides is most likely best between, and then rules out most others.
  const bool hurries = std::isfinite(time_left_s());
  std::vector<Wanted> wanted;
  for (const std::size_t size : places) {
    std::vector<std::size_t> likely = neighbours(size);
    const auto best = hurries ? most_promising(size) : std::nullopt;
    if (best && std::ranges::count(likely, *best) == 0) likely.push_back(*best);
    for (const std::size_t candidate : likely) wanted.push_back({candidate, size});
  }
  predict(wanted, predict_all);
  const bool is_late = !wanted.empty() && hurries && is_time_up();
  wanted.clear();
  for (const std::size_t size : places) {
    if (is_late) break;
    const std::optional<std::size_t> best = best_at(size);
    for (std::size_t candidate = 0; candidate < candidates_.size(); ++candidate) {
      if (known_[candidate].contains(size)) continue;
      const bool is_out = best && shorter(time_s(*best, size), least_s(candidate, size));
      if (!is_out) wanted.push_back({candidate, size});
    }
  }
  predict(wanted, predict_all);
  for (const std::size_t size : places) chosen_[size] = {true, best_at(size)};
}

std::optional<TuningChoice> SizeChooser::choice(std::size_t place) const {
  const auto& best = chosen_[place].candidate;
  if (!best) return std::nullopt;
  return TuningChoice{candidates_[*best], known_[*best].at(place)};
}

void SizeChooser::predict(const std::vector<Wanted>& wanted, const PredictAll& predict_all) {
  if (wanted.empty()) return;
  std::vector<Query> queries;
  for (const Wanted& one : wanted) {
    Query& query = queries.emplace_back(question_);
    query.algorithm = candidates_[one.candidate];
    query.size_bytes = sizes_[one.size];
  }
  std::vector<Prediction> predictions = predict_all(queries);
  CHECK(predictions.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    known_[wanted[i].candidate].emplace(wanted[i].size, std::move(predictions[i]));
  }
}

double SizeChooser::time_s(std::size_t candidate, std::size_t size) const {
  return known_[candidate].at(size).best.time_s;
}

/// The fastest of those that are known; of equal ones the first.
std::optional<std::size_t> SizeChooser::best_at(std::size_t size) const {
  std::optional<std::size_t> best;
  for (std::size_t candidate = 0; candidate < candidates_.size(); ++candidate) {
    const auto known = known_[candidate].find(size);
    if (known == known_[candidate].end() || known->second.skipped) continue;
    if (!best || shorter(known->second.best.time_s, time_s(*best, size))) best = candidate;
  }
  return best;
}

/// As Study::shortest_time_s.
double SizeChooser::least_s(std::size_t candidate, std::size_t size) const {
  double least_s = 0;
  for (const auto& [other, prediction] : known_[candidate]) {
    least_s =
        std::max(least_s, least_by(prediction.best.time_s, sizes_[other], sizes_[size], *machine_));
  }
  return least_s;
}

/// By what is known of other sizes, as Study::longest_time_s.
std::optional<std::size_t> SizeChooser::most_promising(std::size_t size) const {
  std::optional<std::size_t> best;
  double best_s = std::numeric_limits<double>::infinity();
  for (std::size_t candidate = 0; candidate < candidates_.size(); ++candidate) {
    for (const auto& [other, prediction] : known_[candidate]) {
      if (prediction.skipped) continue;
      const double most_s = promised_s(prediction.best.time_s, sizes_[other], sizes_[size]);
      if (!shorter(most_s, best_s)) continue;
      best = candidate;
      best_s = most_s;
    }
  }
  return best;
}

bool SizeChooser::was_predicted(std::size_t candidate) const {
  return std::ranges::any_of(known_[candidate],
                             [](const auto& one) { return one.second.skipped != kNoTimeLeft; });
}

/// What was chosen for the next size below and above, each once.
std::vector<std::size_t> SizeChooser::neighbours(std::size_t size) const {
  std::vector<std::size_t> found;
  const auto add = [&](const Chosen& one) {
    if (!one.candidate) return false;
    if (std::ranges::count(found, *one.candidate) == 0) found.push_back(*one.candidate);
    return true;
  };
  for (std::size_t below = size; below-- > 0;) {
    if (add(chosen_[below])) break;
  }
  for (std::size_t above = size + 1; above < sizes_.size(); ++above) {
    if (add(chosen_[above])) break;
  }
  return found;
}

PredictAll predict_with(Study& study) {
  return [&study](const std::vector<Query>& queries) {
    std::vector<Prediction> predictions;
    for (const Query& query : queries) predictions.push_back(study.predict(query));
    return predictions;
  };
}

void choose_all(SizeChooser& chooser, const PredictAll& predict_all,
                const std::function<void(std::int64_t size_bytes)>& on_chosen) {
  for (const std::vector<std::size_t>& level : bisection_levels(chooser.sizes().size())) {
    chooser.choose(level, predict_all);
    if (!on_chosen) continue;
    for (const std::size_t place : level) on_chosen(chooser.sizes()[place]);
  }
}

}  // namespace espalier
