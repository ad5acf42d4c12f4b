// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// Whether an op that waits for another one, of so many groups further on, waits for its result to
/// be where it belongs. At one place it waits for its end alone.
inline bool awaits_result(const Program& program, const Op& op, const Op& other, int group) {
  return op.at != other.at || group % program.fold.rank_groups() != 0;
}

/// Who waits for whom in a program: its dependencies turned round, and the lanes. Some 8 bytes per
/// op and 4 per dependency.
class OpGraph {
 public:
  static constexpr OpId kNone = ~OpId{0};

  /// Refers to the program. \pre dependencies name ops of it (rule R3). Cycles are allowed: such
  /// ops stay blocked. `awaits_result`: by dependency, whether it is one on the result and not just
  /// on the end of an op; empty where places tell.
  explicit OpGraph(const Program& program, const std::vector<bool>& awaits_result = {});

  std::span<const OpId> successors(OpId op) const {
    return {successors_.data() + first_[op], first_[op + 1] - first_[op]};
  }
  /// Calls `visit(OpId, int group, bool awaits_result)` for each of them; of a folded program, with
  /// how many groups further on the op is that it waits for.
  template <class Visit>
  void for_each_successor(OpId op, Visit&& visit) const {
    for (std::uint32_t i = first_[op]; i < first_[op + 1]; ++i) {
      const OpId next = successors_[i];
      const int group = groups_.empty() ? 0 : groups_[i];
      visit(next, group,
            awaits_result_.empty()
                ? awaits_result(program_, program_.ops[next], program_.ops[op], group)
                : awaits_result_[i]);
    }
  }
  /// The op after it on its lane, or kNone.
  OpId next_in_lane(OpId op) const { return next_in_lane_[op]; }
  /// The op before it on its lane, or kNone. Slow: for messages.
  OpId previous_in_lane(OpId op) const;
  /// How many ends of other ops it waits for.
  std::uint32_t waits(OpId op) const {
    return program_.ops[op].dep_count + (has_previous_[op] ? 1U : 0U);
  }
  /// Of a place that move data: those that need blocks of a GPU.
  std::uint32_t moving_lanes(PlaceId place) const {
    return moving_lanes_[static_cast<std::size_t>(place)];
  }
  /// Of the lane that has most ops, of the one that moves most, and of the one that computes
  /// longest.
  std::uint32_t most_ops_in_lane() const { return most_ops_; }
  double most_units_in_lane() const { return most_units_; }
  double most_compute_in_lane_s() const { return most_compute_s_; }

 private:
  const Program& program_;
  std::vector<std::uint32_t> first_;  ///< ops + 1; into successors_
  std::vector<OpId> successors_;
  std::vector<int> groups_;          ///< of each of these; empty where the program is not folded
  std::vector<bool> awaits_result_;  ///< of each of these; empty where places tell
  std::vector<OpId> next_in_lane_;
  std::vector<bool> has_previous_;           ///< by op: one on its lane
  std::vector<std::uint32_t> moving_lanes_;  ///< by place
  std::uint32_t most_ops_ = 0;
  double most_units_ = 0;
  double most_compute_s_ = 0;
};

}  // namespace espalier
