// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "planner/forest.h"

namespace espalier {

/// Most ranks that Blink's protocols are planned for.
inline constexpr int kMostBlinkRanks = 16;

/// What every GPU sends where under one of Blink's protocols (SysML 2018). Shares of the message
/// are chosen so that the busiest link is least loaded; the paper, whose groups are symmetrical,
/// divides evenly, which comes out here as well.
struct BlinkPlan {
  /// gather: paths instead of spanning trees, from the root to the owner of the block that `weight`
  /// units of come the other way.
  Forest forest;
  /// By tree, allreduce only: the rank of the other group that combines both groups' results at the
  /// same time as the tree's root does, so that each forwards within its own group; -1: data goes
  /// to the root and comes back.
  std::vector<int> partners;
};

/// Why there is no plan for these GPUs: they are not one or two fully connected groups. Empty:
/// there is one. \pre 2 to kMostBlinkRanks ranks
std::string no_blink_groups(const Router& router, const Placement& placement);

/// \pre no_blink_groups answered nothing; the collective is broadcast, reduce, allreduce,
/// allgather, reducescatter or gather.
BlinkPlan plan_blink(Collective collective, int root, const Router& router,
                     const Placement& placement);

}  // namespace espalier
