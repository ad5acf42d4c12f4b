// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/check.h"
#include "ir/access_tracker.h"

namespace espalier {

/// An AccessTracker for folded programs, of whose ops only those of the first group of ranks are
/// there. The accesses of all groups are kept where the first group has what they access: when
/// op b, which accesses something of group g, meets op a, which accesses something of group h at
/// the same units, then b of any group meets a of the group g - h further on. Not installed.
class FoldedAccesses {
 public:
  static constexpr OpId kNone = AccessTracker::kNone;

  /// `fold` is referred to.
  explicit FoldedAccesses(const Fold& fold) : fold_(fold) {}

  /// As AccessTracker does, with `conflict(OpId earlier, int group)`, of so many groups further on
  /// in [0, groups); it names `op` itself where its groups meet each other.
  /// \pre the slice is moved as one, or whole periods
  template <class Conflict>
  void read(OpId op, const Operand& operand, std::uint32_t length, Conflict&& conflict) {
    access(op, operand, length, conflict, [&](const auto&... of) { tracker_.read(of...); });
  }
  template <class Conflict>
  void write(OpId op, const Operand& operand, std::uint32_t length, Conflict&& conflict) {
    access(op, operand, length, conflict, [&](const auto&... of) { tracker_.write(of...); });
  }
  OpId last_writer(const Operand& operand, std::uint32_t length) const {
    const OpId last = tracker_.last_writer(packed_in_first_group(fold_, operand, length), length);
    return last == kNone ? kNone : accesses_[last].op;
  }

 private:
  struct Access {
    OpId op = 0;
    int group = 0;  ///< of what is accessed
  };

  template <class Conflict, class Apply>
  void access(OpId op, const Operand& operand, std::uint32_t length, Conflict& conflict,
              const Apply& apply) {
    const int group = group_of(fold_, operand);
    CHECK(fold_.is_one(operand.place, operand.buffer, operand.begin, length));
    accesses_.push_back({op, group});
    apply(static_cast<OpId>(accesses_.size() - 1), packed_in_first_group(fold_, operand, length),
          length, [&](OpId other) {
            const Access& earlier = accesses_[other];
            const int further = fold_.wrapped(group - earlier.group);
            if (earlier.op != op || further != 0) conflict(earlier.op, further);
          });
  }

  const Fold& fold_;
  AccessTracker tracker_;  ///< of `accesses_`, in place of ops
  std::vector<Access> accesses_;
};

}  // namespace espalier
