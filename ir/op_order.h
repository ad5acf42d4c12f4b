// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// The lanes of a program. The ops of one place and lane run in program order, one at a time: a
/// chain of ops. Not installed.
struct LaneChains {
  static constexpr OpId kNone = ~OpId{0};

  std::vector<std::uint32_t> chain;     ///< by op
  std::vector<std::uint32_t> position;  ///< by op: how many ops of its chain come before it
  std::vector<OpId> previous;           ///< by op: the one before it on its chain, or kNone
  std::uint32_t count = 0;              ///< chains
};

LaneChains lane_chains(const Program& program);

/// The ops in an order that dependencies and lanes allow: always the lowest op number that can run.
/// Ops that can never run are left out. \pre dependencies name ops of the program.
std::vector<OpId> run_order(const Program& program, const LaneChains& lanes);

/// A cycle of dependencies and lanes, each op waiting for the next and the last for the first, or
/// nothing when all ops can run. \pre `order` is run_order(program, lanes).
std::vector<OpId> find_cycle(const Program& program, const LaneChains& lanes,
                             const std::vector<OpId>& order);

/// True when the ops touch the same units of a buffer and one of them writes there: data flow
/// orders them then. In a folded program, of any two groups of ranks.
bool conflict(const Program& program, const Op& a, const Op& b);

/// "op 3 waits for op 5, op 5 waits for op 3 (lane 0 of r1)".
std::string describe_cycle(const Program& program, const LaneChains& lanes,
                           const std::vector<OpId>& cycle);

}  // namespace espalier
