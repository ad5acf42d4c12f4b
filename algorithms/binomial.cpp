// SPDX-License-Identifier: Apache-2.0
// Gather and scatter along a binomial tree, where the blocks of a subtree travel together: the root
// takes part in ceil(log2 n) transfers instead of n - 1 (Thakur, Rabenseifner and Gropp, IJHPCA
// 2005).
#include <algorithm>

#include "algorithms/schedules.h"

namespace espalier {

namespace {

/// Positions count from the root. An inner rank at position p keeps the blocks of its subtree,
/// positions p, p + 1, ..., at the start of its scratch.
class SubtreeBlocks {
 public:
  SubtreeBlocks(Builder& builder, const BuildRequest& request)
      : builder_(builder), request_(request), gather_(request.collective == Collective::gather) {}

  /// Moves the `count` blocks of the subtree of the child at position `child` between it and its
  /// parent at position `parent`.
  void transfer(int parent, int child, int count) {
    const int parent_rank = real_rank(request_, parent);
    const int child_rank = real_rank(request_, child);
    // The root's blocks are in rank order: a subtree that passes the last rank is two slices there.
    const int in_order = parent == 0 ? std::min(count, request_.ranks - child_rank) : count;
    for (int done = 0; done < count;) {
      const int part = done == 0 ? in_order : count - done;
      const Slice above = parent == 0
                              ? whole(parent_rank, (child_rank + done) % request_.ranks, part)
                              : builder_.tmp(parent_rank, child - parent + done, part);
      const Slice below = count == 1 ? own(child_rank) : builder_.tmp(child_rank, done, part);
      move(above, below, 0);
      done += part;
    }
  }

  /// Joins an inner rank's own block with those of its subtree (gather) or takes it out (scatter).
  void own_block(int position) {
    const int rank = real_rank(request_, position);
    const Slice there = position == 0 ? whole(rank, rank, 1) : builder_.tmp(rank, 0, 1);
    move(there, own(rank), 1);
  }

 private:
  /// Towards the root in a gather, away from it in a scatter.
  void move(const Slice& above, const Slice& below, int lane) {
    builder_.copy(gather_ ? above : below, gather_ ? below : above, {.lane = lane});
  }
  /// Of the root's n blocks.
  Slice whole(int rank, int begin, int length) const {
    return gather_ ? builder_.output(rank, begin, length) : builder_.input(rank, begin, length);
  }
  /// The block that a rank contributes or needs.
  Slice own(int rank) const {
    return gather_ ? builder_.input(rank, 0, 1) : builder_.output(rank, 0, 1);
  }

  Builder& builder_;
  const BuildRequest& request_;
  bool gather_;
};

Program build_binomial(const BuildRequest& request) {
  Builder builder("binomial", request.contract(request.ranks));
  SubtreeBlocks blocks(builder, request);
  std::vector<KnomialEdge> edges = knomial_edges(request.ranks, 2);
  const bool gather = request.collective == Collective::gather;
  if (gather) std::reverse(edges.begin(), edges.end());
  const auto own_blocks = [&] {
    blocks.own_block(0);
    for (const KnomialEdge& edge : edges) {
      if (edge.span > 1) blocks.own_block(edge.child);
    }
  };
  if (gather) own_blocks();
  for (const KnomialEdge& edge : edges) blocks.transfer(edge.parent, edge.child, edge.span);
  if (!gather) own_blocks();
  return builder.finish();
}

}  // namespace

const Algorithm& binomial_algorithm() {
  static const Algorithm algorithm = {
      .name = "binomial",
      .summary = "blocks of a subtree travel together along a binomial tree",
      .constraints = "any number of ranks",
      .paper = "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
      .collectives = {Collective::gather, Collective::scatter},
      .of_ranks_alone = true,
      .build = build_binomial};
  return algorithm;
}

}  // namespace espalier
