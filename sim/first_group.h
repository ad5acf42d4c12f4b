// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/program.h"
#include "ir/rounds.h"

namespace espalier {

/// Where the first group has what an op reads and writes (see first_group_of). Asked about every
/// op, and dear in a folded program: so it is found once for the ops of the first round.
class FirstGroup {
 public:
  /// Refers to the program, whose rounds these are.
  FirstGroup(const Program& program, const Rounds& rounds) : program_(program) {
    if (!program.fold.is_folded()) return;
    for (OpId id = 0; id < rounds.ops; ++id) {
      const Op& op = program.ops[id];
      destinations_.push_back(find(op, op.dst, 0));
      const std::uint32_t end = op.src_begin + op.src_count + op.copy_count;
      if (end > sources_.size()) sources_.resize(end);
      for (std::uint32_t i = op.src_begin; i < end; ++i) {
        sources_[i] = find(op, program.sources[i], 0);
      }
    }
  }

  /// Calls `visit(FromGroup)` for each source of an op that is like that one, so many units further
  /// on (Rounds::alike).
  template <class Visit>
  void for_each_source(OpId like, std::uint32_t units_on, Visit&& visit) const {
    const Op& op = program_.ops[like];
    for (std::uint32_t i = op.src_begin; i < op.src_begin + op.src_count; ++i) {
      visit(source(like, i, units_on));
    }
  }
  /// The same for each destination.
  template <class Visit>
  void for_each_destination(OpId like, std::uint32_t units_on, Visit&& visit) const {
    const Op& op = program_.ops[like];
    if (op.kind != OpKind::combine) return;
    visit(like < destinations_.size() ? further(destinations_[like], units_on)
                                      : find(op, op.dst, units_on));
    const std::uint32_t first = op.src_begin + op.src_count;
    for (std::uint32_t i = first; i < first + op.copy_count; ++i) {
      visit(source(like, i, units_on));
    }
  }

 private:
  static FromGroup further(FromGroup known, std::uint32_t units_on) {
    known.operand.begin += units_on;
    return known;
  }
  FromGroup find(const Op& op, const Operand& operand, std::uint32_t units_on) const {
    Operand there = operand;
    there.begin += units_on;
    if (!program_.fold.is_folded()) return {0, there};
    return first_group_of(program_.fold, there, op.length);
  }
  FromGroup source(OpId like, std::uint32_t i, std::uint32_t units_on) const {
    return like < destinations_.size() ? further(sources_[i], units_on)
                                       : find(program_.ops[like], program_.sources[i], units_on);
  }

  const Program& program_;
  // Of the first round of a folded program.
  std::vector<FromGroup> destinations_;  ///< by op
  std::vector<FromGroup> sources_;       ///< as in Program::sources
};

}  // namespace espalier
