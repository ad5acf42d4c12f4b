// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/collective.h"

namespace espalier {

/// How a program repeats itself from one group of ranks to the next, so that the ops of the first
/// group say what all others do (docs/ir.md, "Folded programs"). Rank r is number r % `each` of
/// group r / `each`. Group g does what group 0 does, with every rank moved on by g * `each` (after
/// the last rank comes the first) and every unit of a buffer by g * `step` within its period.
struct Fold {
  /// Units [k * period, (k + 1) * period) of a buffer are turned among themselves.
  struct Turn {
    std::int64_t period = 1;
    std::int64_t step = 0;
    bool operator==(const Turn&) const = default;
  };

  int groups = 1;               ///< 1: not folded
  int each = 0;                 ///< ranks of a group
  std::array<Turn, 3> turns{};  ///< by Buffer
  /// By index into Program::dependencies: how many groups after its own the group is whose op it
  /// is, in [0, groups).
  std::vector<int> dependency_groups = {};

  bool is_folded() const { return groups > 1; }
  int group_of(int rank) const { return is_folded() ? rank / each : 0; }
  /// `groups_on` may be negative.
  int wrapped(int group) const { return (group % groups + groups) % groups; }
  int rank_moved(int rank, int groups_on) const {
    return wrapped(group_of(rank) + groups_on) * each + rank % each;
  }
  std::int64_t unit_moved(Buffer buffer, std::int64_t unit, int groups_on) const {
    const Turn& turn = turns[static_cast<std::size_t>(buffer)];
    const std::int64_t by = groups_on % groups * turn.step % turn.period;
    const std::int64_t from = unit % turn.period;
    return unit - from + (from + by + turn.period) % turn.period;
  }
  /// Where the slice [begin, begin + length) then begins; whole periods stay where they are.
  std::int64_t moved(Buffer buffer, std::int64_t begin, std::int64_t length, int groups_on) const {
    return is_whole_periods(buffer, begin, length) ? begin : unit_moved(buffer, begin, groups_on);
  }
  /// Whether its units stay together.
  bool is_moved_as_one(Buffer buffer, std::int64_t begin, std::int64_t length,
                       int groups_on) const {
    const Turn& turn = turns[static_cast<std::size_t>(buffer)];
    const auto is_in_one_period = [&](std::int64_t from) {
      return from % turn.period + length <= turn.period;
    };
    return turn.step % turn.period == 0 || is_whole_periods(buffer, begin, length) ||
           (is_in_one_period(begin) && is_in_one_period(unit_moved(buffer, begin, groups_on)));
  }
  bool operator==(const Fold&) const = default;

 private:
  bool is_whole_periods(Buffer buffer, std::int64_t begin, std::int64_t length) const {
    const std::int64_t period = turns[static_cast<std::size_t>(buffer)].period;
    return begin % period == 0 && length % period == 0;
  }
};

}  // namespace espalier
