// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "planner/forest.h"

namespace espalier {

/// Writes trees as ops. Every transfer takes the tree's path and has a lane of its own at the
/// place that carries it out: cut into pieces, the trees that share a link then move side by side,
/// each with its part of it, and none waits behind another. Private to this room.
class ForestWriter {
 public:
  /// A stretch of the message, where each site (see planner/forest.h) keeps it; of no units where a
  /// relay has none. \pre places of the builder are sites
  using Slices = std::vector<Slice>;

  /// Keeps references to its arguments.
  ForestWriter(Builder& builder, const Router& router, const Placement& placement);

  /// Down the tree: from `held[root]` to `held[rank]` of everybody else.
  void send_down(const PlannedTree& tree, const Slices& held);
  /// Up the tree: every rank combines what it has (`own[rank]`) with what its children have
  /// combined, in `partial[rank]`; a rank without children passes on its own.
  void combine_up(const PlannedTree& tree, const Slices& own, const Slices& partial);

  /// An unused lane of a place.
  int new_lane(PlaceId place);

 private:
  std::string via(int from, int to, const std::vector<NodeId>& path) const;

  Builder& builder_;
  const Router& router_;
  const Placement& placement_;
  std::vector<int> lanes_;  ///< by site: those in use
};

/// How a forest's trees are cut into strips: parts of the message that take the same way, each on
/// lanes of its own. Links divide their bandwidth evenly between the transfers that are under way,
/// so strips of one weight get the shares that were planned. Two strips of a tree, half a piece
/// apart (Chunking::stagger), hide each other's start-ups.
struct Strips {
  std::int64_t per_unit = 2;      ///< strips of a unit of weight, as many units of the contract
  std::int64_t max_ops = 16'000;  ///< where unit strips would make more, strips are wider
};

/// Into how many strips a tree of so many units is cut, of trees that would have `ops` ops in
/// strips of one unit: strips of equal width, as nearly as the weights of the trees allow. Wider
/// ones would end last.
inline std::int64_t strip_count(std::int64_t units, std::int64_t ops, const Strips& strips) {
  const std::int64_t unit_ops = std::max(ops, strips.max_ops);
  return std::max<std::int64_t>(1, (units * strips.max_ops + unit_ops / 2) / unit_ops);
}

/// Calls write(strip) for all strips of a forest, tree by tree: the tree with the strip's
/// weight, in units of 1 / `strips.per_unit`.
template <typename Write>
void for_each_strip(const Forest& forest, const Strips& strips, Write write) {
  std::int64_t ops = 0;
  for (const PlannedTree& tree : forest.trees) {
    ops += strips.per_unit * tree.weight * static_cast<std::int64_t>(tree.edges.size());
  }
  for (const PlannedTree& tree : forest.trees) {
    const std::int64_t units = strips.per_unit * tree.weight;
    const std::int64_t count = strip_count(units, ops, strips);
    PlannedTree strip = tree;
    for (std::int64_t i = 0; i < count; ++i) {
      strip.weight = units * (i + 1) / count - units * i / count;
      write(strip);
    }
  }
}

/// Adds the placement's relays to the builder where a tree needs them, so that its places are
/// sites. Returns how many were added.
int add_relays(Builder& builder, const BuildRequest& request, const Forest& forest);

/// Broadcast, reduce, allgather or reducescatter along the trees of a forest for it.
Program forest_program(std::string name, const BuildRequest& request, const Forest& forest,
                       const Strips& strips);

/// Allreduce along the trees of a forest for it: up every tree and, as results come in, down the
/// same one.
Program allreduce_program(std::string name, const BuildRequest& request, const Forest& forest,
                          const Strips& strips);

}  // namespace espalier
