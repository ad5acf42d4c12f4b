// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "topologies/placement.h"

namespace espalier {

/// The ends of trees' transfers are sites: the ranks, and after them the placement's relays.
inline NodeId site_node(const Placement& placement, int site) {
  const auto at = static_cast<std::size_t>(site);
  const std::size_t ranks = placement.ranks.size();
  return at < ranks ? placement.ranks[at] : placement.relays[at - ranks];
}

/// A transfer of a tree from parent to child. `path`: the switches and other nodes between the two
/// GPUs, in that order; empty on a direct link.
struct TreeEdge {
  int parent = 0;  ///< sites
  int child = 0;
  std::vector<NodeId> path;
  bool operator==(const TreeEdge&) const = default;
};

/// A tree over all ranks, and perhaps relays (none of them a leaf), that carries `weight` units of
/// the message (of the root's block, for collectives in which every rank is a root); or a path from
/// a rank to another, perhaps over relays, that carries them. Edges stand parents first.
struct PlannedTree {
  int root = 0;
  std::int64_t weight = 1;
  std::vector<TreeEdge> edges;
  /// Allreduce: a child of the root that combines what comes up on both sides of the edge between
  /// them at the same time as the root does, so that each sends the result down its own side; -1:
  /// data goes to the root and comes back.
  int partner = -1;

  int height() const;
  bool uses_relays(int ranks) const;
};

/// Trees that together carry the message at `algbw_gbps` without overloading any link.
///
/// broadcast: trees from the root, weights add up to `units`. allgather: every rank's trees add up
/// to `units / ranks`. reduce and reducescatter: the same with data going up, towards the root.
/// allreduce: up every tree, then down it; roots are free, and may be relays.
///
/// gather, scatter, alltoall, sendrecv: paths. Data goes from the root to the last child; for a
/// gather, from the last child to the root. The paths of every pair add up to `units / ranks`, a
/// block; of sendrecv to `units`, the whole message. What a rank keeps is no path.
struct Forest {
  Collective collective = Collective::allreduce;
  std::int64_t units = 1;
  std::vector<PlannedTree> trees;
  double algbw_gbps = 0;    ///< the rate at which every link moves its planned share
  std::string exact_algbw;  ///< the same as a fraction of the link figures, "600/7"
  /// The rate the planner would attain if GPUs could map the memory of any number of others,
  /// if that plan exceeded Node::peer_limit and was replaced by this one; 0 otherwise.
  double unlimited_gbps = 0;
  /// A sentence where the search for trees ended early, so that better ones may exist; else empty.
  std::string note = {};
};

/// The forest of a single rank: one tree without edges, at an unlimited rate.
Forest nothing_to_send(Collective collective);

/// Whether a forest for the collective consists of paths.
bool has_paths(Collective collective);
/// Whether data goes up a forest's trees, towards their roots, and whether it goes down; both for
/// allreduce.
bool goes_up(Collective collective);
bool goes_down(Collective collective);

/// The forest with weights that are about `strips` times their parts of the message, in whole
/// numbers: of every root's part, or every pair's, at least one. Trees and paths whose part is too
/// small are left out, and others carry it, so that links may carry more than planned: few trees
/// for runtimes of few blocks. The forest itself where its units are no more than that.
Forest round_weights(const Forest& forest, std::int64_t strips);

/// Problems of a forest: a tree that does not span, a path that branches or passes a rank twice,
/// weights that do not add up, a link loaded beyond its capacity at `algbw_gbps` (relative 1e-9).
/// Empty: it is what it claims. Independent of how it was made.
std::vector<std::string> check_forest(const Forest& forest, const Router& router,
                                      const Placement& placement);

}  // namespace espalier
