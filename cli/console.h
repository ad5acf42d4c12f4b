// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace espalier {

/// Where a verb speaks: results to `out`, talk to `err`. Plain unless connected to a terminal.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool colour = false;  ///< `out` shows colours
  bool live = false;    ///< `err` is a terminal: progress may be redrawn
  int width = 100;      ///< columns of `out`
  int lines = 0;        ///< of the terminal that `out` and `err` share; 0: they do not
  /// How often progress has a line of its own in `err` when that is no terminal, but the log of a
  /// batch job.
  std::chrono::seconds log_period = std::chrono::seconds(30);
  bool is_mute = false;  ///< another process says the same: nothing is printed or written
};

/// One that says nothing.
Console mute_console();

/// Looks at the process's terminals when the streams are std::cout and std::cerr. Colours are off
/// when NO_COLOR is set or TERM is "dumb" (no-color.org).
Console make_console(std::ostream& out, std::ostream& err);

enum class Style { bold, good, dim };

/// `text` in a style, or as it is when the console has no colours.
std::string styled(const Console& console, Style style, std::string_view text);

/// Prints a note for the reader: a line to `err`.
void say(const Console& console, std::string_view text);
/// Says what it is told as notes. The console is borrowed.
std::function<void(const std::string&)> notes_to(const Console& console);

/// Writes a whole file, or to `out` when `path` is "-". Throws Error{input} when it can't.
void write_output(const Console& console, const std::string& path, std::string_view content);

/// "[#####.....] 3/12 ring 1GiB (7 s)" on the terminal's last line, once a run takes a noticeable
/// time; the seconds are those of the step and go on by themselves. When a search takes
/// longer than two seconds, what it is doing (see Activity) instead of the bar: "1/1 optimal:
/// planning: packing trees: 40 % of its budget, about 6 s left (4 s)". Where `err` is not a
/// terminal, a line every half a minute. Erased at the end of its life, with the lines above it.
class Progress {
 public:
  /// `done` steps of `total` are behind it.
  Progress(const Console& console, std::size_t total, std::size_t done = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Begins the next step.
  void step(std::string_view label);
  /// Draws the bar again, which may have been taken away, in the same step.
  void resume(std::string_view label);
  /// Takes the bar away so that something can be printed, until the next step or `resume`.
  void erase();
  /// Says this, terminal or not, if it is still there after so long.
  void remind(std::chrono::milliseconds after, std::string text);
  /// From then on, what stands above the bar: rows of a table that is not complete, as many as the
  /// terminal has room for. Nothing when results go elsewhere than to that terminal.
  void show_above(std::vector<std::string> lines);

 private:
  using Clock = std::chrono::steady_clock;

  void show(std::string_view label);  ///< \pre mutex_ is held
  void draw();                        ///< same
  void log();                         ///< same
  void say_reminder();                ///< same
  std::string erasure() const;        ///< same; what takes away what is drawn

  const Console& console_;
  std::size_t total_;
  std::size_t started_ = 0;
  std::string label_;  ///< of the step under way, empty after erase()
  std::vector<std::string> above_;
  std::optional<std::size_t> drawn_;  ///< lines above the bar, if it is there
  std::string reminder_;
  Clock::time_point reminder_time_;
  Clock::time_point begin_;
  Clock::time_point step_begin_;
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread redrawing_;
};

}  // namespace espalier
