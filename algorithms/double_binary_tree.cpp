// SPDX-License-Identifier: Apache-2.0
// Two trees, each for half of the message, such that no rank is an inner node of both: Sanders,
// Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
// Computing 35(12), 2009. A rank receives and sends at full rate: two halves as inner node of one
// tree, nothing more to send (or receive) as leaf of the other.
#include <array>

#include "algorithms/schedules.h"
#include "ir/binary_tree.h"

namespace espalier {

namespace {

constexpr int kUpLane = 0;  // Lanes apart: chunks go down while later ones still come up.
constexpr int kFirstDownLane = 1;

/// One tree at work on its half of the message.
class HalfTree {
 public:
  /// Node i is the rank `first_rank + i`, counted around.
  HalfTree(Builder& builder, const BinaryTree& tree, int half, int first_rank)
      : builder_(builder), tree_(tree), half_(half), first_rank_(first_rank) {}

  /// Combines the subtree of `node`; returns where the result is. Children stand left and right of
  /// their parent in the order of combination.
  Slice reduce(int node) const {
    if (!tree_.is_inner(node)) return builder_.input(rank(node), half_, 1);
    const auto [left, right] = tree_.children[static_cast<std::size_t>(node)];
    std::vector<Slice> sources;
    if (left != BinaryTree::kNone) sources.push_back(reduce(left));
    sources.push_back(builder_.input(rank(node), half_, 1));
    if (right != BinaryTree::kNone) sources.push_back(reduce(right));
    const Slice result = accumulator(builder_, rank(node), half_, 1);
    builder_.combine(result, sources, {.lane = kUpLane});
    return result;
  }

  /// Hands the node's output down to its subtree, each child on a lane of its own.
  void broadcast(int node) const {
    const Slice from = builder_.output(rank(node), half_, 1);
    for (int side = 0; side < 2; ++side) {
      const int child =
          tree_.children[static_cast<std::size_t>(node)][static_cast<std::size_t>(side)];
      if (child == BinaryTree::kNone) continue;
      builder_.copy(builder_.output(rank(child), half_, 1), from, {.lane = kFirstDownLane + side});
      broadcast(child);
    }
  }

  int rank(int node) const { return wrap(first_rank_ + node, builder_.ranks()); }

 private:
  Builder& builder_;
  const BinaryTree& tree_;
  int half_;
  int first_rank_;
};

/// Allreduce: all ranks form the trees. Broadcast and reduce: all but the root, which feeds (or
/// reads) the tops of both, each on a lane of its own.
void build_half(Builder& builder, const BuildRequest& request, const BinaryTree& tree, int half) {
  const bool allreduce = request.collective == Collective::allreduce;
  const HalfTree work(builder, tree, half, allreduce ? 0 : request.root + 1);
  if (allreduce) {
    work.reduce(tree.top);
    work.broadcast(tree.top);
  } else if (request.collective == Collective::broadcast) {
    builder.copy(builder.output(work.rank(tree.top), half, 1), builder.input(request.root, half, 1),
                 {.lane = half});
    work.broadcast(tree.top);
  } else {
    builder.combine(builder.output(request.root, half, 1),
                    {builder.input(request.root, half, 1), work.reduce(tree.top)}, {.lane = half});
  }
}

Program build_double_binary_tree(const BuildRequest& request) {
  constexpr int kLocalLane = 2;
  const int n = request.ranks;
  Builder builder("double_binary_tree", request.contract(2));
  const bool allreduce = request.collective == Collective::allreduce;
  if (n > 1) {
    const std::array<BinaryTree, 2> trees = two_trees(allreduce ? n : n - 1);
    for (int half = 0; half < 2; ++half) build_half(builder, request, trees[half], half);
  }
  if (n == 1 || request.collective == Collective::broadcast) {
    keep_own(builder, request.root, 0, 2, kLocalLane);
  }
  return builder.finish();
}

}  // namespace

const Algorithm& double_binary_tree_algorithm() {
  static const Algorithm algorithm = {
      .name = "double_binary_tree",
      .summary =
          "two binary trees, each with half of the message; inner nodes of one are leaves of "
          "the other",
      .constraints = "any number of ranks",
      .paper = "Sanders, Speck and Träff, Parallel Computing 2009",
      .collectives = {Collective::allreduce, Collective::broadcast, Collective::reduce},
      .pipelined = true,
      .of_ranks_alone = true,
      .build = build_double_binary_tree};
  return algorithm;
}

}  // namespace espalier
