// SPDX-License-Identifier: Apache-2.0
#include "core/activity.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
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

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

/// What is under way. \pre mutex is held
std::string text_of_own() {
  if (under_way.empty()) return "";
  std::vector<std::string> names;
  for (const UnderWay& one : under_way) names.push_back(one.what);
  const std::string text = join(names, ": ");
  const UnderWay& last = under_way.back();
  if (last.part <= 0) return text;
  const double spent_s = seconds(last.noted - last.begin);
  const double left_s =
      std::min(spent_s / last.part - spent_s, last.left_s) - seconds(Clock::now() - last.noted);
  return fmt::format("{}: {:.0f} % {}, about {:.0f} s left", text, 100 * last.part, last.of,
                     std::round(std::max(left_s, 0.0)));
}

}  // namespace

/// Written by one process and read by another: what is read while it is written is not used.
struct SharedActivity::Text {
  static constexpr std::size_t kLength = 240;
  std::atomic<std::uint32_t> version = 0;  ///< odd while it is written
  std::array<std::atomic<char>, kLength> letters{};

  void write(const std::string& text) {
    version.fetch_add(1, std::memory_order_acq_rel);
    for (std::size_t i = 0; i < kLength; ++i) {
      letters[i].store(i < text.size() ? text[i] : '\0', std::memory_order_relaxed);
    }
    version.fetch_add(1, std::memory_order_release);
  }

  std::string read() const {
    const std::uint32_t before = version.load(std::memory_order_acquire);
    std::string text;
    for (const std::atomic<char>& letter : letters) {
      const char one = letter.load(std::memory_order_relaxed);
      if (one == '\0') break;
      text.push_back(one);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    const bool is_whole = before % 2 == 0 && version.load(std::memory_order_relaxed) == before;
    return is_whole ? text : "";
  }
};

namespace {

constexpr auto kPublishingPeriod = std::chrono::milliseconds(500);

SharedActivity::Text* published = nullptr;    ///< where this process writes
const SharedActivity::Text* shown = nullptr;  ///< where it reads
Clock::time_point last_published;

/// \pre mutex is held
void publish_own() {
  if (published == nullptr) return;
  last_published = Clock::now();
  published->write(text_of_own());
}

void note(double part, std::string_view of) {
  const double left_s = time_left_s();
  const std::lock_guard lock(mutex);
  if (under_way.empty()) return;
  UnderWay& innermost = under_way.back();
  innermost.part = std::clamp(part, 0.0, 1.0);
  innermost.of = of;
  innermost.left_s = left_s;
  innermost.noted = Clock::now();
  if (innermost.noted - last_published >= kPublishingPeriod) publish_own();
}

}  // namespace

Activity::Activity(std::string what) {
  const std::lock_guard lock(mutex);
  under_way.push_back({std::move(what)});
  publish_own();
}

Activity::~Activity() {
  const std::lock_guard lock(mutex);
  under_way.pop_back();
  publish_own();
}

void Activity::note_part(double part) { note(part, "of its budget"); }

void Activity::note_done(double part) { note(part, "done"); }

std::optional<std::string> Activity::describe() {
  const std::lock_guard lock(mutex);
  std::string text = text_of_own();
  if (text.empty() && shown != nullptr) text = shown->read();
  if (text.empty()) return std::nullopt;
  return text;
}

SharedActivity::SharedActivity() : text_(nullptr) {
  void* const memory = mmap(nullptr, sizeof(Text), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, /*fd=*/-1, /*offset=*/0);
  if (memory != MAP_FAILED) text_ = new (memory) Text;
}

SharedActivity::~SharedActivity() {
  if (text_ == nullptr) return;
  const std::lock_guard lock(mutex);
  if (shown == text_) shown = nullptr;
  if (published == text_) published = nullptr;
  munmap(text_, sizeof(Text));
}

void SharedActivity::publish() {
  const std::lock_guard lock(mutex);
  published = text_;
  publish_own();
}

void SharedActivity::show(const SharedActivity* worker) {
  const std::lock_guard lock(mutex);
  shown = worker == nullptr ? nullptr : worker->text_;
}

}  // namespace espalier
