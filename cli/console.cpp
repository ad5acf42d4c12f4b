// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>

#include "core/activity.h"
#include "core/file.h"

namespace espalier {

namespace {

constexpr int kProgressBarColumns = 24;
constexpr auto kQuietTime = std::chrono::milliseconds(300);
/// Of a step, before it is said what a search does in it: at the second redrawing.
constexpr auto kPatience = std::chrono::milliseconds(1500);
constexpr auto kRedrawPeriod = std::chrono::seconds(1);
/// Columns of a progress line besides its label: the bar, two counts, the seconds.
constexpr int kProgressColumns = kProgressBarColumns + 28;
constexpr int kMinWidth = 60;
constexpr int kMaxWidth = 160;

bool set_and_not_empty(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

/// Of a terminal; zeros where that is not known.
winsize terminal_size(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

}  // namespace

Console make_console(std::ostream& out, std::ostream& err) {
  Console console{out, err};
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  if (&out == &std::cout && isatty(STDOUT_FILENO) == 1) {
    console.colour = !dumb && !set_and_not_empty("NO_COLOR");
    const winsize size = terminal_size(STDOUT_FILENO);
    if (size.ws_col > 0) console.width = std::clamp<int>(size.ws_col, kMinWidth, kMaxWidth);
    // Lines narrower than they are counted as would be taken away in part.
    if (size.ws_col >= kMinWidth) console.lines = size.ws_row;
  }
  console.live = &err == &std::cerr && isatty(STDERR_FILENO) == 1 && !dumb;
  if (!console.live) console.lines = 0;
  return console;
}

Console mute_console() {
  static std::ostream nowhere(nullptr);
  Console console{nowhere, nowhere};
  console.is_mute = true;
  return console;
}

std::string styled(const Console& console, Style style, std::string_view text) {
  if (!console.colour) return std::string(text);
  switch (style) {
    case Style::bold:
      return fmt::format("\033[1m{}\033[0m", text);
    case Style::good:
      return fmt::format("\033[1;32m{}\033[0m", text);
    case Style::dim:
      return fmt::format("\033[2m{}\033[0m", text);
  }
  return std::string(text);
}

void say(const Console& console, std::string_view text) { console.err << text << '\n'; }

std::function<void(const std::string&)> notes_to(const Console& console) {
  return [&console](const std::string& note) { say(console, "note: " + note); };
}

void write_output(const Console& console, const std::string& path, std::string_view content) {
  if (console.is_mute) return;
  if (path == "-") {
    console.out << content;
  } else {
    write_file(path, content);
  }
}

Progress::Progress(const Console& console, std::size_t total, std::size_t done)
    : console_(console), total_(total), started_(done), begin_(Clock::now()), step_begin_(begin_) {
  redrawing_ = std::jthread([this](const std::stop_token& stop) {
    Clock::time_point next_log = begin_ + console_.log_period;
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, stop, kRedrawPeriod, [&] { return stop.stop_requested(); })) {
      say_reminder();
      draw();
      if (console_.live || Clock::now() < next_log) continue;
      next_log += console_.log_period;
      log();
    }
  });
}

void Progress::remind(std::chrono::milliseconds after, std::string text) {
  const std::lock_guard lock(mutex_);
  reminder_ = std::move(text);
  reminder_time_ = Clock::now() + after;
}

void Progress::say_reminder() {
  if (reminder_.empty() || Clock::now() < reminder_time_) return;
  if (drawn_) console_.err << erasure();
  drawn_.reset();
  say(console_, reminder_);
  reminder_.clear();
}

Progress::~Progress() {
  redrawing_.request_stop();
  if (redrawing_.joinable()) redrawing_.join();
  erase();
}

void Progress::step(std::string_view label) {
  const std::lock_guard lock(mutex_);
  ++started_;
  total_ = std::max(total_, started_);
  step_begin_ = Clock::now();
  show(label);
}

void Progress::resume(std::string_view label) {
  const std::lock_guard lock(mutex_);
  show(label);
}

void Progress::show(std::string_view label) {
  label_ =
      label.substr(0, static_cast<std::size_t>(std::max(console_.width - kProgressColumns, 1)));
  draw();
}

void Progress::erase() {
  const std::lock_guard lock(mutex_);
  if (drawn_) console_.err << erasure() << std::flush;
  drawn_.reset();
  label_.clear();
}

void Progress::show_above(std::vector<std::string> lines) {
  const std::lock_guard lock(mutex_);
  // The bar, and the line that a shell's prompt was on, are to stay on the screen.
  const auto most = static_cast<std::size_t>(std::max(console_.lines - 2, 0));
  if (lines.size() > most) lines.resize(most);
  for (std::string& line : lines) {
    line.resize(std::min(line.size(), static_cast<std::size_t>(console_.width - 1)));
  }
  above_ = std::move(lines);
}

std::string Progress::erasure() const {
  return drawn_.value_or(0) == 0 ? "\r\033[K" : fmt::format("\033[{}A\r\033[J", *drawn_);
}

void Progress::draw() {
  const Clock::time_point now = Clock::now();
  if (!console_.live || label_.empty() || now - begin_ < kQuietTime) return;
  const auto filled = static_cast<std::size_t>(kProgressBarColumns) *
                      (std::max<std::size_t>(started_, 1) - 1) / std::max<std::size_t>(total_, 1);
  const auto step_s = std::chrono::round<std::chrono::seconds>(now - step_begin_).count();
  const std::string time = step_s > 0 ? fmt::format(" ({} s)", step_s) : "";
  console_.err << erasure();
  for (const std::string& line : above_) console_.err << line << '\n';
  if (const auto search = now - step_begin_ < kPatience ? std::nullopt : Activity::describe()) {
    // There is no room for both the bar and what is being done.
    const auto room = static_cast<std::size_t>(console_.width) - time.size() - 1;
    const std::string text = fmt::format("{}/{} {}: {}", started_, total_, label_, *search);
    console_.err << text.substr(0, room) << time;
  } else {
    console_.err << fmt::format("[{:#<{}}{:.<{}}] {}/{} {}{}", "", filled, "",
                                kProgressBarColumns - filled, started_, total_, label_, time);
  }
  console_.err << std::flush;
  drawn_ = above_.size();
}

void Progress::log() {
  if (label_.empty()) return;
  const auto s = std::chrono::round<std::chrono::seconds>(Clock::now() - begin_).count();
  std::string text = fmt::format("{} s: {}/{} {}", s, started_, total_, label_);
  if (const auto search = Activity::describe()) text += ": " + *search;
  console_.err << text << std::endl;
}

}  // namespace espalier
