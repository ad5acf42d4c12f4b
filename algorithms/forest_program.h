// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
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

  /// A tree, and where sites have its part of the message.
  struct Laid {
    PlannedTree tree;
    Slices own;   ///< before; of trees that data goes up
    Slices held;  ///< what came down, or was combined
  };

  /// Keeps references to its arguments.
  ForestWriter(Builder& builder, const Router& router, const Placement& placement);

  /// Down trees, from what the root holds to what all others do. Several are alike, but for their
  /// ranks (groups_of_trees), and advance together: the first step of each, then the second ones.
  void send_down(std::span<const Laid> alike);
  void send_down(const Laid& one) { send_down({&one, 1}); }
  /// Up trees: every rank combines its own with what its children hold, and holds the result; a
  /// rank without children passes on its own.
  void combine_up(std::span<const Laid> alike);

  /// An unused lane of a place.
  int new_lane(PlaceId place);

 private:
  /// Children of a site, and the way that their data takes up to it; empty: the router's.
  struct Way {
    std::string path;
    std::vector<int> children;
  };
  /// Of a tree, by site, in the order of its edges.
  using Children = std::vector<std::vector<Way>>;

  std::string via(int from, int to, const std::vector<NodeId>& path) const;
  Children children_of(const PlannedTree& tree) const;
  void combine(const Laid& laid, const Children& children, int parent);

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

/// Calls write(tree, weight) for all strips of the first trees of a forest, tree by tree: the
/// number of the tree, and the strip's weight in units of 1 / `strips.per_unit`.
template <typename Write>
void for_each_strip(const Forest& forest, std::size_t trees, const Strips& strips, Write write) {
  std::int64_t ops = 0;
  for (const PlannedTree& tree : forest.trees) {
    ops += strips.per_unit * tree.weight * static_cast<std::int64_t>(tree.edges.size());
  }
  for (std::size_t tree = 0; tree < trees; ++tree) {
    const std::int64_t units = strips.per_unit * forest.trees[tree].weight;
    const std::int64_t count = strip_count(units, ops, strips);
    for (std::int64_t i = 0; i < count; ++i) {
      write(tree, units * (i + 1) / count - units * i / count);
    }
  }
}

/// Calls write(strip) for all strips of a forest: the tree with the strip's weight.
template <typename Write>
void for_each_strip(const Forest& forest, const Strips& strips, Write write) {
  for_each_strip(forest, forest.trees.size(), strips, [&](std::size_t tree, std::int64_t weight) {
    PlannedTree strip = forest.trees[tree];
    strip.weight = weight;
    write(strip);
  });
}

/// Adds the placement's relays to the builder where a tree needs them, so that its places are
/// sites. Returns how many were added.
int add_relays(Builder& builder, const BuildRequest& request, const Forest& forest);

/// Of how many groups of ranks that are next to each other every one has the trees of the group
/// before it, with all ranks moved on by a group: plans by alike nodes are such. 1 where there are
/// none.
int groups_of_trees(const Forest& forest, int ranks);

/// How the program that follows a forest folds, by its contract; the way with the most groups
/// first.
std::vector<Fold> folds_of_trees(const Contract& contract, const Forest& forest);

/// Of the programs below.
Contract contract_of_trees(const BuildRequest& request, const Forest& forest, const Strips& strips);

/// Broadcast, reduce, allgather or reducescatter along the trees of a forest for it. Trees of
/// groups that are alike advance together, so that their ranks number their lanes alike.
Program forest_program(std::string name, const BuildRequest& request, const Forest& forest,
                       const Strips& strips);

/// Allreduce along the trees of a forest for it: up every tree and, as results come in, down the
/// same one.
Program allreduce_program(std::string name, const BuildRequest& request, const Forest& forest,
                          const Strips& strips);

}  // namespace espalier
