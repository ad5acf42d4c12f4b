// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/program.h"
#include "run/report.h"

namespace espalier {

/// How far a simulation is with an op, and in the end when it began. What is looked at when another
/// op ends is in one place: programs have millions of ops, which lie far apart in memory.
struct OpRecord {
  static constexpr OpId kNone = ~OpId{0};

  double start_s = 0;         ///< until it begins: ticks at which what it waits for is there
  OpId cause = kNone;         ///< the op that let it start
  std::uint32_t awaited = 0;  ///< ends of other ops, before it may start; then its own flows
};
static_assert(sizeof(OpRecord) == 16);

/// The end of an op.
struct OpEnd {
  static constexpr double kNever = -1;

  double end_s = kNever;  ///< its lane is free again
  double seen_s = 0;      ///< its result is where it belongs; until it ends: that much later
};

/// When every op of a simulation ran and what it waited for last.
struct OpHistory {
  std::vector<OpRecord> ops;
  /// By op; or, where those of all groups are simulated, of the latest op of every lane alone.
  std::vector<OpEnd> ends;
  OpId last = OpRecord::kNone;      ///< the first op of those whose results are there last
  double last_seen_s = 0;           ///< when they are
  std::vector<int> cause_group;     ///< of a folded program: so many groups further on
  std::vector<bool> by_landing;     ///< of all groups: the cause's result was under way to the op
  std::vector<OpId> order;          ///< in which ops began, where lanes share blocks
  std::vector<OpId> without_steps;  ///< ops that wait for steps of their FIFO in vain
  std::int64_t transfers = 0;       ///< between places (see for_each_transfer)
  std::optional<RepeatedRounds> repeated;  ///< of the program's ops, where these are those here
};

}  // namespace espalier
