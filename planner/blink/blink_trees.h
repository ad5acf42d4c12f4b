// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/blink_plan.h"
#include "topologies/placement.h"

// The paths that data may take in Blink's protocols. Private to the room.
//
// Blink (SysML 2018) divides GPUs into fully connected groups. Within a group, data goes directly
// from its owner to the others, or is sent to one of them, which forwards it to the rest
// ("forwarding trees", figure 1b); a reduction runs the same way backwards. Between groups it
// crosses a link and is forwarded within the other group at the same time ("cross-group
// forwarding"). The paper spells this out for allreduce on two groups of four, each GPU with a link
// to its counterpart. For other groups it only says that the protocol applies; what is added here
// so that no cross link lies idle:
// - data may cross over several links at once, to GPUs that forward it to those that have none;
// - what a root sends to the other group first may come back from there to its own group, over the
//   cross links that carry nothing in that direction otherwise.

namespace espalier {

/// Ranks in one or two groups. Within a group every pair is joined by the GPU fabric.
struct BlinkGroups {
  std::vector<std::vector<int>> groups;  ///< sorted, the larger first
  std::string why_not;                   ///< no such groups: why; empty otherwise
};

/// The grouping with the largest first group; of several such groupings, the one whose
/// narrowest connection within groups is widest. \pre two ranks or more, at most kMaxBlinkRanks
BlinkGroups find_blink_groups(const Router& router, const Placement& placement);

/// Transfers from parent to child, parents first.
using TreeEdges = std::vector<std::pair<int, int>>;

/// Makes the trees and paths of the protocols.
class BlinkTrees {
 public:
  BlinkTrees(const Router& router, const Placement& placement, const BlinkGroups& groups);

  /// Ways to bring a root's data to all ranks.
  std::vector<TreeEdges> from(int root) const;
  /// Ways to bring a rank's data to the root, as paths from the root on.
  std::vector<TreeEdges> paths(int root, int source) const;
  bool same_group(int a, int b) const;

  /// The trees of figure 1b, for a root whose group is all there is: to one GPU of the group each,
  /// which forwards to the others.
  std::vector<TreeEdges> printed_broadcast(int root) const;
  /// The trees of figure 2, from which the message comes back the way it went: a GPU combines its
  /// part of the message for its group. Where there are two groups, GPUs with a link to a
  /// counterpart in the other have a part each, exchange it and forward the result; those without
  /// have none.
  std::vector<TreeEdges> printed_allreduce() const;

 private:
  const std::vector<int>& group_of(int rank) const;
  /// The members of the other group; none when there is one group.
  std::vector<int> others_of(int rank) const;
  double gbps(int a, int b) const;
  int widest_neighbour(int rank, const std::vector<int>& candidates) const;
  /// Ways to reach `targets`, a part of one group, from `holders` in the other,
  /// which all have the data: some targets over cross links; these forward it
  /// to the rest, and so may `helper` in their own group (-1: none).
  std::vector<TreeEdges> across(const std::vector<int>& holders, const std::vector<int>& targets,
                                int helper) const;

  BlinkGroups groups_;
  std::vector<std::vector<double>> gbps_;  ///< of the fabric joint of two ranks; 0: none
};

}  // namespace espalier
