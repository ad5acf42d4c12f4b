// SPDX-License-Identifier: Apache-2.0
#include "core/activity.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time_limit.h"
#include "core/words.h"

namespace espalier {

namespace {

using Clock = std::chrono::steady_clock;

struct UnderWay {
  std::string what;
  Clock::time_point begin = Clock::now();
  double part = 0;
  std::string_view of = {};                                 ///< what it is a part of
  double left_s = std::numeric_limits<double>::infinity();  ///< at most, when `part` was noted
  Clock::time_point noted = begin;
};

std::mutex mutex;
std::vector<UnderWay> under_way;  ///< innermost last

void note(double part, std::string_view of) {
  const double left_s = time_left_s();
  const std::lock_guard lock(mutex);
  if (under_way.empty()) return;
  UnderWay& innermost = under_way.back();
  innermost.part = std::clamp(part, 0.0, 1.0);
  innermost.of = of;
  innermost.left_s = left_s;
  innermost.noted = Clock::now();
}

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Activity::Activity(std::string what) {
  const std::lock_guard lock(mutex);
  under_way.push_back({std::move(what)});
}

Activity::~Activity() {
  const std::lock_guard lock(mutex);
  under_way.pop_back();
}

void Activity::note_part(double part) { note(part, "of its budget"); }

void Activity::note_done(double part) { note(part, "done"); }

std::optional<std::string> Activity::describe() {
  const std::lock_guard lock(mutex);
  if (under_way.empty()) return std::nullopt;
  std::vector<std::string> names;
  for (const UnderWay& one : under_way) names.push_back(one.what);
  std::string text = join(names, ": ");
  const UnderWay& last = under_way.back();
  if (last.part <= 0) return text;
  text += fmt::format(": {:.0f} % {}", 100 * last.part, last.of);
  const double spent_s = seconds(last.noted - last.begin);
  const double left_s =
      std::min(spent_s / last.part - spent_s, last.left_s) - seconds(Clock::now() - last.noted);
  return text + fmt::format(", about {:.0f} s left", std::ceil(std::max(left_s, 0.0)));
}

}  // namespace espalier
