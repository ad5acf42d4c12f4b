// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "exec/lanes/lowering.h"
#include "ir/program.h"

namespace espalier {

/// A lane that has not finished: what it is at, and the op of another lane it needs first, if any.
struct BlockedLane {
  static constexpr OpId kNone = ~OpId{0};
  std::uint32_t lane = 0;  ///< index into LanePrograms::lanes
  OpId op = 0;
  OpId waits_for = kNone;
};

/// The lanes that have not finished, given the ops that have ended (by op): each is at its first op
/// that has not, and waits for the first of that op's dependencies that has not.
std::vector<BlockedLane> unfinished_lanes(const Program& program, const LanePrograms& lowered,
                                          const std::vector<bool>& ended);

/// The error of a run that can't finish: `what` in a sentence, then, lane by lane, the op each is
/// blocked at and what it waits for; the first lanes only when there are many.
Error stuck_error(const std::string& what, const Program& program, const LanePrograms& lowered,
                  const std::vector<BlockedLane>& blocked);

}  // namespace espalier
