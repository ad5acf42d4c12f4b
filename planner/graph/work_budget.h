// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/activity.h"
#include "core/time_limit.h"

// Private to the room.

namespace espalier {

/// What a search may cost. Steps are counted, not timed, so that a question has the same answer on
/// every computer, however busy. One step is about as much as looking at one link: some
/// nanoseconds. Where there is a TimeLimit as well, all is spent when the time is up. Every few
/// milliseconds it notes how far the search is (see Activity).
class WorkBudget {
 public:
  explicit WorkBudget(std::int64_t steps) : all_(steps), left_(steps) {
    if (steps > 0) look();
  }

  void spend(std::int64_t steps) {
    left_ -= steps;
    if ((unlooked_ += steps) >= kStepsBetweenLooks) look();
  }
  std::int64_t left() const { return left_; }
  bool is_spent() const { return left_ <= 0; }

 private:
  /// Some milliseconds.
  static constexpr std::int64_t kStepsBetweenLooks = 1'000'000;

  void look() {
    unlooked_ = 0;
    Activity::note_part(1 - static_cast<double>(left_) / static_cast<double>(all_));
    if (left_ > 0 && is_time_up()) left_ = 0;
  }

  std::int64_t all_;
  std::int64_t left_;
  std::int64_t unlooked_ = 0;
};

/// Which of the two ended a search: "its budget of steps was spent", "its time ran out".
inline const char* why_search_stopped() {
  return time_left_s() <= 0 ? "its time ran out" : "its budget of steps was spent";
}

/// Of one packing by column generation: some ten seconds. No machine of the catalogue, alone or a
/// few of them together, comes near.
inline constexpr std::int64_t kMaxPackingWork = 2'000'000'000;

}  // namespace espalier
