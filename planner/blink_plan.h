// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "planner/forest.h"

namespace espalier {

/// Maximum number of ranks for which Blink's protocols are planned.
inline constexpr int kMaxBlinkRanks = 16;

/// Why there is no plan for these GPUs: they are not one or two fully connected groups. Empty:
/// there is one. \pre 2 to kMaxBlinkRanks ranks
std::string no_blink_groups(const Router& router, const Placement& placement);

/// What every GPU sends, and where to, under one of Blink's protocols (SysML 2018). Shares of the
/// message are chosen so that the busiest link is least loaded; the paper, whose groups are
/// symmetrical, divides evenly, which comes out here as well. Allreduce: the partner of a tree's
/// root is in the other group. Gather: paths instead of spanning trees, from the root to the owner
/// of the block that `weight` units of come the other way.
///
/// \pre no_blink_groups answered nothing; the collective is broadcast, reduce, allreduce,
/// allgather, reducescatter or gather.
Forest plan_blink(Collective collective, int root, const Router& router,
                  const Placement& placement);

}  // namespace espalier
