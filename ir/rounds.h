// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "ir/program.h"

namespace espalier {

/// How a program goes through a message round by round, as NCCL does chunk by chunk: it begins with
/// `ops` ops, which come again until there are `count` rounds, each time `units` further on. Where
/// every rank has a block of its own, a round is a part of each block. Rounds have units and
/// dependencies of their own, and so has what follows them. A fold turns each round within itself,
/// or whole blocks, so that alike ops are about the same groups. Not installed.
struct Rounds {
  OpId ops = 0;
  OpId count = 0;
  std::uint32_t units = 0;  ///< of the message, or of each block

  OpId end() const { return ops * count; }
  std::int64_t all_units() const { return std::int64_t{count} * units; }

  /// The op of the first round that an op is like, or an op itself that follows the rounds; and how
  /// many ops and units further on it is.
  struct Alike {
    OpId op = 0;
    OpId ops_on = 0;
    std::uint32_t units_on = 0;
  };
  Alike alike(OpId id) const {
    if (id >= end()) return {id, 0, 0};
    const OpId round = id / ops;
    return {id - round * ops, round * ops, round * units};
  }
};

/// Nothing where there are not at least three, where a fold turns what they use in another way, or
/// where ops wait for later ones.
std::optional<Rounds> find_rounds(const Program& program);

/// A program of one op, to be printed: that one as it is in a program with more rounds, so many ops
/// and units further on, where the message, or each block, is so many units longer.
Program op_further_on(const Program& program, OpId id, OpId ops_on, std::uint32_t units_on,
                      std::int64_t units_longer);

/// The program with one of its rounds in place of all, and with the units of the others taken out.
/// What verifies for it (rules R5 to R9) does for the whole program (docs/ir.md, "Folded
/// programs"). Nothing where there are no rounds, or what ranks are promised is not the same of
/// every unit.
std::optional<Program> with_one_round(const Program& program);

}  // namespace espalier
