// SPDX-License-Identifier: Apache-2.0
#include "scenarios/weighing.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/time_limit.h"

namespace espalier {

namespace {

/// Plans that take no more than this many times the time of the best are tried in all their forms.
constexpr double kNearBest = 1.15;

class Weighing {
 public:
  Weighing(const AlgorithmChoice& choice, const WeighedBy& by)
      : by_(by), open_(open_parameters(choice)), default_(choice) {
    for (const AlgorithmParameter* parameter : open_) {
      default_.parameters[parameter->name] = parameter->default_value;
    }
  }

  Prediction best() {
    try_plans();
    // Of slower plans than what is worthwhile fewer are written in other ways.
    const bool is_bounded = !is_possible() || best_->best.time_s > by_.worthwhile_s;
    const double best_s = to_beat_s();
    for (const auto& [time_s, plan] : plans_) {
      // Of several plans, what one takes in one form tells roughly what it takes in others. Where
      // there is but one, forms differ by up to a factor of two.
      if (plans_.size() > 1 && time_s > kNearBest * best_s) continue;
      for (const AlgorithmParameter* parameter : open_) {
        if (parameter->of_plan) continue;
        for (const AlgorithmChoice& other : with_values(plan, *parameter)) time_if_new(other, 1);
      }
    }
    best_->is_bounded = is_bounded;
    return *best_;
  }

 private:
  /// One parameter after the other, those before at their best.
  void try_plans() {
    const bool hurries = std::isfinite(time_left_s());
    if (hurries && by_.as_before) {
      plans_.emplace_back(time_if_new(*by_.as_before, kNearBest), *by_.as_before);
    }
    if (hurries) {
      plans_.emplace_back(time_if_new(default_, kNearBest), default_);
    } else {
      is_new(default_);
      plans_.emplace_back(kAnyTime, default_);
    }
    bool knows_default = hurries;
    const auto find_default = [&] {
      if (std::exchange(knows_default, true)) return;
      plans_.front().first = time_of(default_, has_other_forms(default_) ? kNearBest : 1, true);
    };
    for (const AlgorithmParameter* parameter : open_) {
      if (!parameter->of_plan) continue;
      const AlgorithmChoice base =
          std::ranges::min_element(plans_, {}, [](const auto& one) { return one.first; })->second;
      for (const AlgorithmChoice& other : with_values(base, *parameter)) {
        plans_.emplace_back(time_if_new(other, kNearBest), other);
      }
      find_default();
    }
    find_default();
  }

  static std::vector<AlgorithmChoice> with_values(const AlgorithmChoice& base,
                                                  const AlgorithmParameter& parameter) {
    std::vector<AlgorithmChoice> all;
    for (const std::int64_t value : parameter.tried) {
      all.push_back(base);
      all.back().parameters[parameter.name] = value;
    }
    return all;
  }

  /// Whether a plan can be written in other ways.
  bool has_other_forms(const AlgorithmChoice& plan) const {
    const std::shared_ptr<const Program> usual = by_.program(plan);
    return std::ranges::any_of(open_, [&](const AlgorithmParameter* parameter) {
      if (parameter->of_plan) return false;
      return std::ranges::any_of(with_values(plan, *parameter), [&](const auto& other) {
        const std::shared_ptr<const Program> program = by_.program(other);
        return !usual || !program || !same_program(*usual, *program);
      });
    });
  }

  bool is_possible() const { return best_ && !best_->skipped; }

  /// Whether it is to be tried: notes its program.
  bool is_new(const AlgorithmChoice& choice) {
    const std::shared_ptr<const Program> program = by_.program(choice);
    if (!program) return true;
    const auto is_same = [&](const auto& tried) { return same_program(*tried, *program); };
    if (std::ranges::any_of(tried_, is_same)) return false;
    if (!tried_.empty() && by_.is_crowded(*program)) return false;
    tried_.push_back(program);
    return true;
  }

  double time_if_new(const AlgorithmChoice& choice, double of_best) {
    if (is_possible() && is_time_up()) return kAnyTime;
    return is_new(choice) ? time_of(choice, of_best, false) : kAnyTime;
  }

  double to_beat_s() const {
    const double best_s = is_possible() ? best_->best.time_s : kAnyTime;
    return std::min(best_s, by_.worthwhile_s);
  }

  /// No more than an upper bound where that is above `of_best` times the time to beat.
  double time_of(const AlgorithmChoice& choice, double of_best, bool wins_ties) {
    const double best_s = is_possible() ? best_->best.time_s : kAnyTime;
    Prediction made = by_.predict(choice, of_best * to_beat_s());
    const double time_s = made.skipped ? kAnyTime : made.best.time_s;
    const bool is_better = wins_ties ? !shorter(best_s, time_s) : shorter(time_s, best_s);
    if (!best_ || is_better) best_ = std::move(made);
    return time_s;
  }

  const WeighedBy& by_;
  const std::vector<const AlgorithmParameter*> open_;
  AlgorithmChoice default_;
  std::vector<std::shared_ptr<const Program>> tried_;
  std::optional<Prediction> best_;
  std::vector<std::pair<double, AlgorithmChoice>> plans_;  ///< with their times
};

}  // namespace

Prediction weigh(const AlgorithmChoice& choice, const WeighedBy& by) {
  return Weighing(choice, by).best();
}

}  // namespace espalier
