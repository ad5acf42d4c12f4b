// SPDX-License-Identifier: Apache-2.0
#include "core/time_limit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "core/check.h"
#include "core/interruption.h"

namespace espalier {

namespace {

thread_local TimeLimit* innermost = nullptr;

double seconds_of_computer() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

TimeLimit::TimeLimit(double seconds, Clock clock)
    : around_(innermost),
      clock_(clock                ? std::move(clock)
             : around_ != nullptr ? around_->clock_
                                  : Clock(seconds_of_computer)),
      seconds_(seconds),
      end_s_(clock_() + seconds) {
  innermost = this;
}

TimeLimit TimeLimit::share_of_rest(std::size_t parts) {
  CHECK(parts >= 1);
  return TimeLimit(time_left_s() * 2 / static_cast<double>(parts + 1));
}

TimeLimit::~TimeLimit() {
  innermost = around_;
  if (around_ != nullptr) around_->has_cut_short_ = around_->has_cut_short_ || has_cut_short_;
}

std::optional<GrantedTime> TimeLimit::granted() const {
  std::optional<GrantedTime> granted;
  for (const TimeLimit* limit = this; limit != nullptr; limit = limit->around_) {
    if (std::isfinite(limit->seconds_)) granted = {limit->seconds_, has_cut_short_};
  }
  return granted;
}

bool TimeLimit::is_over() {
  is_over_ = is_over_ || (around_ != nullptr && around_->is_over()) ||
             (std::isfinite(end_s_) && clock_() >= end_s_);
  return is_over_;
}

double TimeLimit::left_s() {
  if (is_over()) return 0;
  const double around_s =
      around_ == nullptr ? std::numeric_limits<double>::infinity() : around_->left_s();
  return std::min(around_s, std::max(0.0, end_s_ - clock_()));
}

bool is_time_up() {
  check_interruption();
  if (innermost == nullptr || !innermost->is_over()) return false;
  note_cut_short();
  return true;
}

double time_left_s() {
  return innermost == nullptr ? std::numeric_limits<double>::infinity() : innermost->left_s();
}

void note_cut_short() {
  if (innermost != nullptr) innermost->has_cut_short_ = true;
}

}  // namespace espalier
