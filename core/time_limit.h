// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

namespace espalier {

/// What is to be said with an answer that was looked for within a limit.
struct GrantedTime {
  double seconds = 0;    ///< that were granted, to this question and perhaps others
  bool ran_out = false;  ///< so that more time may find a better answer
  bool operator==(const GrantedTime&) const = default;
};

/// How long the searches of this thread may go on: from when the limit is made until it is
/// destroyed. Limits nest, and the one that ends first counts. Without any, searches end by what
/// they count alone, and answers are the same on every computer; with one they are not.
///
/// A limit is about all searches beneath it, however deep, which is why none is handed down: who
/// makes one need not know what will search, and who searches not who is in a hurry.
class TimeLimit {
 public:
  /// Seconds since some point in time; never goes back.
  using Clock = std::function<double()>;

  /// `seconds` from now at the latest; infinity: as long as the limit around it lasts. Without a
  /// clock, by that of the limit around it, or else by the computer's.
  explicit TimeLimit(double seconds, Clock clock = {});
  /// For one of `parts` tasks still to be done: its share of what is left of the limit around it,
  /// 2 / (parts + 1). Most tasks leave much of that over, which is the others', so that twice an
  /// equal share for each of many is not too much. \pre parts >= 1
  static TimeLimit share_of_rest(std::size_t parts);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  /// Whether a search within it has stopped for it, or for one within it.
  bool has_cut_short() const { return has_cut_short_; }
  /// The same with the seconds of the outermost limit; nothing where all of them are infinite.
  std::optional<GrantedTime> granted() const;

 private:
  friend bool is_time_up();
  friend double time_left_s();
  friend void note_cut_short();

  bool is_over();
  double left_s();

  TimeLimit* const around_;
  const Clock clock_;
  const double seconds_;
  const double end_s_;
  bool is_over_ = false;
  bool has_cut_short_ = false;
};

/// Whether the searches of this thread have to stop. To be asked where there is more to do: that it
/// was left undone is noted.
bool is_time_up();
/// Seconds until then: 0 when it is up, infinity without a limit. Nothing is noted.
double time_left_s();
/// Notes that something was left undone because there would not have been enough time for it.
void note_cut_short();

}  // namespace espalier
