// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "core/check.h"
#include "ir/lane_numbers.h"
#include "ir/program.h"
#include "ir/rounds.h"

namespace espalier {

/// The ops of a simulation, and which op of the program each is like. They are the program's; or,
/// where those of all groups are simulated, op 0 of every group, then op 1 of every group and so
/// on, as `unfold` numbers them.
class OpNames {
 public:
  /// The op that one is like: as Rounds::Alike, or of which group it is.
  struct Alike {
    OpId op = 0;
    OpId ops_on = 0;
    std::uint32_t units_on = 0;
    int group = 0;
  };

  /// Refers to the program. `groups`: groups_run. `rounds`: those of the program, where the ops of
  /// a round stand one behind the other.
  OpNames(const Program& program, int groups, const Rounds& rounds)
      : program_(program), groups_(static_cast<OpId>(groups)), rounds_(rounds) {
    if (groups == 1) return;
    CHECK(size() < std::numeric_limits<OpId>::max());
    LaneNumbers lanes;
    for (const Op& op : program.ops) lane_of_.push_back(lanes.number(op.at, op.lane));
    lanes_ = lanes.size() * groups_;
  }

  /// The ops of a program that has no rounds, or whose operands do not tell.
  static OpNames without_rounds(const Program& program) { return {program, 1, Rounds{}}; }

  const Rounds& rounds() const { return rounds_; }
  bool all_groups() const { return groups_ > 1; }
  std::size_t size() const { return program_.ops.size() * groups_; }
  Alike alike(OpId id) const {
    if (all_groups()) return {id / groups_, 0, 0, static_cast<int>(id % groups_)};
    const Rounds::Alike alike = rounds_.alike(id);
    return {alike.op, alike.ops_on, alike.units_on, 0};
  }
  /// Of all groups: the op that a group knows as the first one does that one.
  OpId of_group(OpId op, int group) const { return op * groups_ + static_cast<OpId>(group); }

  /// Of all groups' lanes: so many, and that of an op.
  std::size_t lanes() const { return lanes_; }
  std::size_t lane(const Alike& alike) const {
    return std::size_t{lane_of_[alike.op]} * groups_ + static_cast<std::size_t>(alike.group);
  }

 private:
  const Program& program_;
  const OpId groups_;
  const Rounds rounds_;
  std::vector<std::uint32_t> lane_of_;  ///< by op of the program; where all groups are simulated
  std::size_t lanes_ = 0;
};

}  // namespace espalier
