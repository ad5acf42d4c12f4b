// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// Places and slices of the first group's ops as the other groups have them. They are asked for
/// again and again, and dear to find: so how each is moved is found once.
class MovedOperands {
 public:
  /// Refers to the program. \pre it is folded, and its groups share no ranks
  explicit MovedOperands(const Program& program) : program_(program), groups_(program.fold.groups) {
    const Fold& fold = program.fold;
    for (int number = 0; number < fold.each; ++number) {
      for (int group = 0; group < groups_; ++group) ranks_.push_back(fold.rank_of(number, group));
    }
    sources_.resize(program.sources.size());
    for (const Op& op : program.ops) {
      destinations_.push_back(of(op.dst, op.length));
      const std::uint32_t end = op.src_begin + op.src_count + op.copy_count;
      for (std::uint32_t i = op.src_begin; i < end; ++i) {
        sources_[i] = of(program.sources[i], op.length);
      }
    }
  }

  PlaceId place(PlaceId rank, int group) const {
    const Fold& fold = program_.fold;
    return moved_rank(fold.number_of(rank), fold.group_of(rank), group);
  }

  /// Calls `visit(Operand)` for each source that the group's op has.
  template <class Visit>
  void for_each_source(OpId op, int group, Visit&& visit) const {
    const Op& of = program_.ops[op];
    for (std::uint32_t i = of.src_begin; i < of.src_begin + of.src_count; ++i) {
      visit(moved(sources_[i], group));
    }
  }
  /// The same for each destination.
  template <class Visit>
  void for_each_destination(OpId op, int group, Visit&& visit) const {
    const Op& of = program_.ops[op];
    if (of.kind != OpKind::combine) return;
    visit(moved(destinations_[op], group));
    const std::uint32_t first = of.src_begin + of.src_count;
    for (std::uint32_t i = first; i < first + of.copy_count; ++i) visit(moved(sources_[i], group));
  }

 private:
  struct Known {
    std::int32_t number = 0;  ///< of its group's ranks
    std::int32_t group = 0;
    std::uint32_t base = 0;  ///< where its period of units begins
    std::uint32_t from = 0;  ///< so many units later it begins
    std::uint32_t period = 1;
    std::uint32_t step = 0;  ///< 0: it stays where it is
    Buffer buffer = Buffer::in;
  };

  Known of(const Operand& operand, std::uint32_t length) const {
    const Fold& fold = program_.fold;
    Known made{fold.number_of(operand.place),
               fold.group_of(operand.place),
               operand.begin,
               0,
               1,
               0,
               operand.buffer};
    if (fold.is_whole_periods(operand.buffer, operand.begin, length)) return made;
    const Fold::Turns& all = fold.turns[static_cast<std::size_t>(operand.buffer)];
    const bool is_rest = operand.begin >= all.rest_begin;
    const Fold::Turn& turn = is_rest ? all.rest : all.most;
    const std::int64_t begin = is_rest ? operand.begin - all.rest_begin : operand.begin;
    made.from = static_cast<std::uint32_t>(begin % turn.period);
    made.base = operand.begin - made.from;
    made.period = static_cast<std::uint32_t>(turn.period);
    made.step = static_cast<std::uint32_t>(turn.step % turn.period);
    return made;
  }

  PlaceId moved_rank(int number, int of_group, int group) const {
    const int there = of_group + group;
    const int wrapped = there < groups_ ? there : there - groups_;
    return ranks_[static_cast<std::size_t>(number) * static_cast<std::size_t>(groups_) +
                  static_cast<std::size_t>(wrapped)];
  }
  Operand moved(const Known& known, int group) const {
    std::uint64_t at = known.from + std::uint64_t{known.step} * static_cast<std::uint64_t>(group);
    // Most turns take all groups to come round.
    if (at >= known.period) at -= known.period;
    if (at >= known.period) at %= known.period;
    return {moved_rank(known.number, known.group, group),
            known.base + static_cast<std::uint32_t>(at), known.buffer};
  }

  const Program& program_;
  const int groups_;
  std::vector<PlaceId> ranks_;       ///< by number in its group and by group
  std::vector<Known> destinations_;  ///< by op
  std::vector<Known> sources_;       ///< as in Program::sources
};

}  // namespace espalier
