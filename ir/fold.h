// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "ir/collective.h"

namespace espalier {

/// How a program repeats itself from one group to the next, so that the ops of the first group say
/// what all others do (docs/ir.md, "Folded programs"). Group g does what group 0 does, with every
/// rank moved on by g groups (after the last group's ranks come the first one's again), every unit
/// of a buffer by g * `step` within its period, and lanes as LaneTurn says.
struct Fold {
  /// Units [k * period, (k + 1) * period) are turned among themselves.
  struct Turn {
    std::int64_t period = 1;
    std::int64_t step = 0;
    bool operator==(const Turn&) const = default;
  };
  /// Of a buffer: in one way, and from `rest_begin` on, from where units are counted then, in
  /// another: where messages end, pieces are shorter.
  struct Turns {
    Turn most = {};
    std::int64_t rest_begin = std::numeric_limits<std::int64_t>::max();
    Turn rest = {};
    bool operator==(const Turns&) const = default;
  };

  /// Lanes move on within every `lanes` lanes that are next to each other: by one from group to
  /// group, as ranks do; or by one each time the ranks have gone around, where groups that have the
  /// same ranks have other lanes of them.
  enum class LaneTurn : std::uint8_t { with_ranks, after_ranks };

  int groups = 1;  ///< 1: not folded
  int each = 0;    ///< ranks of a group
  /// Of these so many are next to each other: `adjacent` ranks of one group, then as many of
  /// another, and again from the start when each had its turn.
  int adjacent = 0;
  /// Which group has its turn first, second, ...; empty: they have it in their order.
  std::vector<int> order = {};
  /// \pre divides `groups`; and where groups share ranks, it takes all groups to turn a unit that
  /// ops use round
  int lanes = 1;
  LaneTurn lane_turn = LaneTurn::with_ranks;
  std::array<Turns, 3> turns{};  ///< by Buffer
  /// By index into Program::dependencies: how many groups after its own the group is whose op it
  /// is, in [0, groups).
  std::vector<int> dependency_groups = {};

  bool is_folded() const { return groups > 1; }
  /// Groups that have no rank in common.
  int rank_groups() const { return lane_turn == LaneTurn::after_ranks ? groups / lanes : groups; }
  bool shares_ranks() const { return rank_groups() < groups; }
  /// `groups_on` may be negative.
  int wrapped(int group) const { return (group % groups + groups) % groups; }

  /// The first group that has the rank; the others are further on by multiples of `rank_groups`.
  int group_of(int rank) const {
    if (!is_folded()) return 0;
    const int turn = rank / adjacent % rank_groups();
    return order.empty() ? turn : order[static_cast<std::size_t>(turn)];
  }
  /// Which of its group's ranks it is.
  int number_of(int rank) const {
    return rank / (adjacent * rank_groups()) * adjacent + rank % adjacent;
  }
  int rank_of(int number, int group) const {
    const auto of_ranks = group % rank_groups();
    const auto turn = order.empty()
                          ? of_ranks
                          : static_cast<int>(std::ranges::find(order, of_ranks) - order.begin());
    return (number / adjacent * rank_groups() + turn) * adjacent + number % adjacent;
  }
  int rank_moved(int rank, int groups_on) const {
    return rank_of(number_of(rank), wrapped(group_of(rank) + groups_on));
  }

  /// The group of a lane's ops.
  int group_of_lane(int rank, int lane) const {
    return group_of(rank) + (shares_ranks() ? rank_groups() * (lane % lanes) : 0);
  }
  int lane_moved(int rank, int lane, int groups_on) const {
    const int first = lane - lane % lanes;
    if (!shares_ranks()) return first + wrapped(lane % lanes + groups_on) % lanes;
    return first + wrapped(group_of_lane(rank, lane) + groups_on) / rank_groups();
  }

  std::int64_t unit_moved(Buffer buffer, std::int64_t unit, int groups_on) const {
    const auto [turn, begin] = turn_at(buffer, unit);
    const std::int64_t by = groups_on % groups * turn.step % turn.period;
    const std::int64_t from = (unit - begin) % turn.period;
    return unit - from + (from + by + turn.period) % turn.period;
  }
  /// The group that knows a unit of a rank as the first group knows the one that is in its place.
  int group_of_unit(int rank, Buffer buffer, std::int64_t unit) const {
    const int group = group_of(rank);
    if (!shares_ranks()) return group;
    const auto [turn, begin] = turn_at(buffer, unit);
    const std::int64_t at = unit_moved(buffer, unit, -group);
    return group + rank_groups() *
                       static_cast<int>((at - begin) % turn.period / (turn.step * rank_groups()));
  }
  /// How many units from this one on stay together when they are moved on, at least.
  std::int64_t move_together(Buffer buffer, std::int64_t unit, int groups_on) const {
    const auto [turn, begin] = turn_at(buffer, unit);
    const std::int64_t left = left_of_turns(buffer, unit);
    if (turn.step % turn.period == 0) return left;
    const std::int64_t at = unit_moved(buffer, unit, groups_on);
    return std::min({left, turn.period - (unit - begin) % turn.period,
                     turn.period - (at - begin) % turn.period});
  }
  /// How many of them are of one group as well, at least.
  std::int64_t stay_together(int rank, Buffer buffer, std::int64_t unit) const {
    const int group = group_of(rank);
    const std::int64_t together = move_together(buffer, unit, -group);
    if (!shares_ranks()) return together;
    const auto [turn, begin] = turn_at(buffer, unit);
    const std::int64_t own = turn.step * rank_groups();
    return std::min(together, own - (unit_moved(buffer, unit, -group) - begin) % own);
  }

  /// Number of a unit of the first group's among these alone: where groups share ranks, those of
  /// the others lie between them.
  std::int64_t packed(Buffer buffer, std::int64_t unit) const {
    if (!shares_ranks()) return unit;
    const auto [turn, begin] = turn_at(buffer, unit);
    const std::int64_t own = turn.step * rank_groups();
    const std::int64_t at = unit - begin;
    return begin / lanes + at / turn.period * own + at % turn.period;
  }

  /// Where the slice [begin, begin + length) then begins; whole periods stay where they are.
  std::int64_t moved(Buffer buffer, std::int64_t begin, std::int64_t length, int groups_on) const {
    return is_whole_periods(buffer, begin, length) ? begin : unit_moved(buffer, begin, groups_on);
  }
  /// Whether the slice's units stay together and are of one group.
  bool is_one(int rank, Buffer buffer, std::int64_t begin, std::int64_t length) const {
    return is_whole_periods(buffer, begin, length) || length <= stay_together(rank, buffer, begin);
  }
  /// Whether it is turned as a whole, among whole periods.
  bool is_whole_periods(Buffer buffer, std::int64_t begin, std::int64_t length) const {
    const auto [turn, first] = turn_at(buffer, begin);
    const Turns& all = turns[static_cast<std::size_t>(buffer)];
    return !shares_ranks() && (begin - first) % turn.period == 0 && length % turn.period == 0 &&
           (first > 0 || begin + length <= all.rest_begin);
  }
  bool operator==(const Fold&) const = default;

 private:
  /// From a unit on, those that are turned in the same way.
  std::int64_t left_of_turns(Buffer buffer, std::int64_t unit) const {
    const std::int64_t rest_begin = turns[static_cast<std::size_t>(buffer)].rest_begin;
    return unit < rest_begin ? rest_begin - unit : std::numeric_limits<std::int64_t>::max();
  }
  /// How a unit is turned, and from where on.
  std::pair<Turn, std::int64_t> turn_at(Buffer buffer, std::int64_t unit) const {
    const Turns& all = turns[static_cast<std::size_t>(buffer)];
    if (unit < all.rest_begin) return {all.most, 0};
    return {all.rest, all.rest_begin};
  }
};

}  // namespace espalier
