// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/op_order.h"
#include "ir/program.h"

namespace espalier {

/// Finds out which of many pairs of ops are ordered by
/// dependencies and lanes. Exact; private to this room.
///
/// Pairs are asked for while walking the run order. Most are settled at once: both ops on one lane,
/// or the later one's lane has waited directly for the earlier one or something after it on its
/// lane (all that the builder leaves out). The rest is kept for `unordered`, which follows 64
/// earlier ops at a time through the part of the order that matters, one bit each.
class RaceChecker {
 public:
  RaceChecker(const Program& program, const LaneChains& lanes, const std::vector<OpId>& order);

  /// Takes note of what `op` waits for. Ops must come in run order.
  void visit(OpId op);
  /// Asks whether `earlier` happens before `later`, the op visited last.
  void require(OpId earlier, OpId later);
  /// The pairs asked for that nothing orders, each once.
  std::vector<std::pair<OpId, OpId>> unordered();

 private:
  struct Pair {
    std::uint32_t earlier;  ///< places in the run order
    std::uint32_t later;
    auto operator<=>(const Pair&) const = default;
  };
  /// The last position on chain `from` that chain `to` has waited for directly.
  struct Sync {
    std::uint32_t to = ~0u;
    std::uint32_t from = 0;
    std::uint32_t position = 0;
  };

  Sync& sync(std::uint32_t to, std::uint32_t from);
  /// Settles pairs [first, last), whose earlier ops are at most 64 different ones.
  void follow(const Pair* first, const Pair* last, std::vector<std::pair<OpId, OpId>>& result);

  const Program& program_;
  const LaneChains& lanes_;
  const std::vector<OpId>& order_;
  std::vector<std::uint32_t> place_;  ///< in the run order, by op
  std::vector<Sync> syncs_;  ///< one entry per hash value: a newer pair of chains replaces an older
  std::vector<Pair> open_;
  std::vector<std::uint64_t>
      reached_;  ///< by place in the order: which of the earlier ops lead here
};

}  // namespace espalier
