// SPDX-License-Identifier: Apache-2.0
// The fastest candidate for every size of a message: see SizeChooser.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/time_limit.h"
#include "scenarios/tuner.h"
#include "scenarios/turns.h"

namespace espalier {

namespace {

/// What takes longer is slower beyond doubt.
double up_to(double time_s) { return time_s * (1 + 2 * kSameTime); }

}  // namespace

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
      slower_than_(candidates_.size()),
      chosen_(sizes_.size()) {
  CHECK(!sizes_.empty() && !candidates_.empty());
}

void SizeChooser::choose(const std::vector<std::size_t>& places, const PredictAll& predict_all) {
  // What is best on both sides is most likely best between, and then rules out most others.
  const bool hurries = std::isfinite(time_left_s());
  std::vector<Asked> asked;
  for (const std::size_t size : places) {
    std::vector<std::size_t> likely = neighbours(size);
    const auto best = hurries ? most_promising(size) : std::nullopt;
    if (best && std::ranges::count(likely, *best) == 0) likely.push_back(*best);
    for (const std::size_t candidate : likely) asked.push_back({candidate, size});
  }
  predict(asked, predict_all);
  const bool is_late = !asked.empty() && hurries && is_time_up();
  asked.clear();
  for (const std::size_t size : places) {
    if (is_late) break;
    const std::optional<std::size_t> best = best_at(size);
    const double to_beat_s = best && !hurries ? up_to(time_s(*best, size)) : kAnyTime;
    for (std::size_t candidate = 0; candidate < candidates_.size(); ++candidate) {
      if (known_[candidate].contains(size)) continue;
      const bool is_out = best && shorter(time_s(*best, size), least_s(candidate, size));
      if (!is_out) asked.push_back({candidate, size, to_beat_s});
    }
  }
  predict(asked, predict_all);
  for (const std::size_t size : places) chosen_[size] = {true, best_at(size)};
}

void SizeChooser::choose_ends(const PredictAll& predict_all) {
  const std::size_t last = sizes_.size() - 1;
  // In a hurry, who predicts decides on the order.
  if (last == 0 || std::isfinite(time_left_s())) {
    choose(bisection_levels(sizes_.size()).front(), predict_all);
    return;
  }
  choose({0}, predict_all);
  predict_variants(predict_all);
  chosen_[last] = {true, best_at(last)};
}

/// For the largest size. A variant matters there if it is faster than all of its algorithm with
/// lower latency. They are asked for in rounds, each of which knows the times of those before: of
/// an algorithm the first, the second, then two, four and so on, so that workers have enough to do.
void SizeChooser::predict_variants(const PredictAll& predict_all) {
  const std::size_t last = sizes_.size() - 1;
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (std::size_t candidate = 0; candidate < candidates_.size(); ++candidate) {
    by_name[name_of_variants(candidates_[candidate])].push_back(candidate);
  }
  std::size_t most = 0;
  for (auto& [name, variants] : by_name) {
    std::ranges::stable_sort(variants, {},
                             [&](std::size_t candidate) { return time_s(candidate, 0); });
    most = std::max(most, variants.size());
  }
  for (std::size_t begin = 0, end = 1; begin < most; begin = end, end *= 2) {
    std::vector<Asked> asked;
    for (const auto& [name, variants] : by_name) {
      double to_beat_s = kAnyTime;
      for (std::size_t i = 0; i < std::min(begin, variants.size()); ++i) {
        const auto known = known_[variants[i]].find(last);
        if (known == known_[variants[i]].end() || known->second.skipped) continue;
        to_beat_s = std::min(to_beat_s, up_to(known->second.best.time_s));
      }
      for (std::size_t i = begin; i < std::min(end, variants.size()); ++i) {
        asked.push_back({variants[i], last, to_beat_s});
      }
    }
    predict(asked, predict_all);
  }
}

std::optional<TuningChoice> SizeChooser::choice(std::size_t place) const {
  const auto& best = chosen_[place].candidate;
  if (!best) return std::nullopt;
  return TuningChoice{candidates_[*best], known_[*best].at(place)};
}

void SizeChooser::predict(const std::vector<Asked>& asked, const PredictAll& predict_all) {
  if (asked.empty()) return;
  std::vector<WantedTime> wanted;
  for (const Asked& one : asked) {
    Query query = question_;
    query.algorithm = candidates_[one.candidate];
    query.size_bytes = sizes_[one.size];
    wanted.push_back({std::move(query), one.worthwhile_s});
  }
  std::vector<Prediction> predictions = predict_all(wanted);
  CHECK(predictions.size() == asked.size());
  std::vector<Asked> again;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto [candidate, size, worthwhile_s] = asked[i];
    Prediction& made = predictions[i];
    if (made.best.time_s > worthwhile_s) {
      double& slower_than_s = slower_than_[candidate].try_emplace(size, 0).first->second;
      slower_than_s = std::max(slower_than_s, worthwhile_s);
    } else if (made.is_bounded && std::isfinite(worthwhile_s)) {
      again.push_back({candidate, size});
    } else {
      known_[candidate].emplace(size, std::move(made));
    }
  }
  predict(again, predict_all);
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
  for (const auto& [other, slower_than_s] : slower_than_[candidate]) {
    least_s = std::max(least_s, least_by(slower_than_s, sizes_[other], sizes_[size], *machine_));
  }
  return least_s;
}

/// By what is known of other sizes, as Study::longest_time_s.
std::optional<std::size_t> SizeChooser::most_promising(std::size_t size) const {
  std::optional<std::size_t> best;
  double best_s = kAnyTime;
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
  return [&study](const std::vector<WantedTime>& wanted) {
    std::vector<Prediction> predictions;
    for (const WantedTime& one : wanted) {
      predictions.push_back(study.predict(one.query, one.worthwhile_s));
    }
    return predictions;
  };
}

void choose_all(SizeChooser& chooser, const PredictAll& predict_all,
                const std::function<void(std::int64_t size_bytes)>& on_chosen) {
  for (const std::vector<std::size_t>& level : bisection_levels(chooser.sizes().size())) {
    if (level.front() == 0) {
      chooser.choose_ends(predict_all);
    } else {
      chooser.choose(level, predict_all);
    }
    if (!on_chosen) continue;
    for (const std::size_t place : level) on_chosen(chooser.sizes()[place]);
  }
}

}  // namespace espalier
