// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "planner/forest.h"

namespace espalier {

/// Maximum number of ranks for which Blink's protocols are planned.
inline constexpr int kMaxBlinkRanks = 16;

/// `best`: shares of the message are chosen so that the busiest link is least loaded, over all ways
/// that the protocols leave open. `printed`: the protocols as the paper prints them, broadcast
/// within a group (figure 1b) and allreduce (figure 2), with equal shares.
enum class BlinkShares : std::uint8_t { best, printed };

/// Why there is no plan for these GPUs: they are not one or two fully connected groups, or the
/// paper prints no protocol. Empty: there is one. \pre 2 to kMaxBlinkRanks ranks
std::string no_blink_plan(Collective collective, const Router& router, const Placement& placement,
                          BlinkShares shares);

/// What every GPU sends, and where to, under one of Blink's protocols (SysML 2018). Allreduce: the
/// partner of a tree's root is in the other group. Gather: paths instead of spanning trees, from
/// the root to the owner of the block that `weight` units of come the other way.
///
/// \pre no_blink_plan answered nothing; the collective is broadcast, reduce, allreduce,
/// allgather, reducescatter or gather.
Forest plan_blink(Collective collective, int root, const Router& router, const Placement& placement,
                  BlinkShares shares = BlinkShares::best);

}  // namespace espalier
