// SPDX-License-Identifier: Apache-2.0
// NVIDIA/nccl src/device/all_reduce.h. In a node, the heads have a share of the message each: what
// they combine is what they exchange with the heads of other nodes, over NICs of their own.
//
// - NVLS tree: heads read sums from the NVSwitch, a double binary tree over nodes carries them up
//   and down, heads store results to all in the switch.
// - NVLS: the same, but a switch of the network combines what the heads have.
// - Collnet direct: heads read from their neighbors instead of the NVSwitch, and write to them.
// - Collnet chain: a channel has one head, to which the node's ranks pass sums on one by one.
//
// The block of a channel has warps for each of its stages, which therefore overlap: a lane each.
#include "algorithms/nccl_across_nodes.h"

#include <algorithm>

#include "algorithms/nccl_rounds.h"
#include "core/check.h"
#include "ir/binary_tree.h"

namespace espalier {
namespace {

std::vector<std::vector<int>> ranks_by_node(const NcclMachine& machine) {
  std::vector<std::vector<int>> nodes(static_cast<std::size_t>(machine.nodes));
  for (std::size_t rank = 0; rank < machine.node_of_rank.size(); ++rank) {
    nodes[static_cast<std::size_t>(machine.node_of_rank[rank])].push_back(static_cast<int>(rank));
  }
  return nodes;
}

class AcrossNodes {
 public:
  AcrossNodes(const BuildRequest& request, double bytes, const NcclChoice& choice)
      : algorithm_(choice.algorithm),
        channels_(choice.work.channels),
        nodes_(ranks_by_node(choice.machine)),
        trees_(two_trees(choice.machine.nodes)),
        heads_(static_cast<int>(std::ranges::min(nodes_, {}, &std::vector<int>::size).size())),
        shares_(algorithm_ == NcclAlgorithm::collnet_chain ? 1 : heads_),
        rounds_(bytes, choice.work, shares_),
        builder_("nccl", request.contract(rounds_.units())) {}

  Program build() {
    rounds_.for_each([&](int channel, std::int64_t first, std::int64_t length) {
      channel_ = channel;
      for (int share = 0; share < shares_; ++share) {
        first_ = first + share * length;
        length_ = std::min(length, rounds_.units() - first_);
        if (length_ > 0) add(shares_ == 1 ? channel % heads_ : share);
      }
    });
    return builder_.finish();
  }

 private:
  // The stages of a channel.
  enum Stage { gather, up, down, hand_out };
  static_assert(hand_out + 1 == kNcclStages);

  void add(int head) {
    for (const std::vector<int>& ranks : nodes_) combine_in(around(ranks, head));
    if (algorithm_ == NcclAlgorithm::nvls_tree) {
      combine_in_tree(head);
    } else {
      std::vector<Slice> sums;
      for (const std::vector<int>& ranks : nodes_) {
        sums.push_back(output(ranks[static_cast<std::size_t>(head)]));
      }
      builder_.in_switch(sums, sums, {.lane = lane(up)});
    }
    for (const std::vector<int>& ranks : nodes_) hand_out_in(around(ranks, head));
  }

  int lane(Stage stage) const { return stage * channels_ + channel_; }
  Slice input(int rank) const { return builder_.input(rank, first_, length_); }
  Slice output(int rank) const { return builder_.output(rank, first_, length_); }
  bool is_in_switch() const {
    return algorithm_ == NcclAlgorithm::nvls || algorithm_ == NcclAlgorithm::nvls_tree;
  }

  /// The ranks of a node, the head first.
  static std::vector<int> around(const std::vector<int>& ranks, int head) {
    std::vector<int> order = ranks;
    std::rotate(order.begin(), order.begin() + head, order.end());  // clang 14 lacks ranges::rotate
    return order;
  }

  /// The sum of a node's inputs, to the first rank's output.
  void combine_in(const std::vector<int>& ranks) {
    std::vector<Slice> inputs;
    for (const int rank : ranks) inputs.push_back(input(rank));
    if (is_in_switch()) {
      builder_.in_switch(std::vector{output(ranks.front())}, inputs, {.lane = lane(gather)});
    } else if (algorithm_ == NcclAlgorithm::collnet_direct || ranks.size() == 1) {
      builder_.combine(output(ranks.front()), inputs, {.lane = lane(gather)});
    } else {
      Slice sum = inputs.back();
      for (std::size_t i = ranks.size() - 1; i-- > 0;) {
        builder_.combine(output(ranks[i]), {inputs[i], sum}, {.lane = lane(gather)});
        sum = output(ranks[i]);
      }
    }
  }

  /// The first rank's output, to those of the other ranks of its node.
  void hand_out_in(const std::vector<int>& ranks) {
    if (ranks.size() == 1) return;
    std::vector<Slice> outputs;
    for (const int rank : ranks) outputs.push_back(output(rank));
    if (is_in_switch()) {
      builder_.in_switch(outputs, std::vector{outputs.front()}, {.lane = lane(hand_out)});
      return;
    }
    const bool is_chain = algorithm_ == NcclAlgorithm::collnet_chain;
    for (std::size_t i = 1; i < ranks.size(); ++i) {
      builder_.copy(outputs[i], outputs[is_chain ? i - 1 : 0], {.lane = lane(hand_out)});
    }
  }

  /// What heads have, up the channel's tree over nodes and down again.
  void combine_in_tree(int head) {
    const BinaryTree& tree = trees_[2 * channel_ < channels_ ? 0 : 1];
    const auto sum = [&](int node) {
      return output(nodes_[static_cast<std::size_t>(node)][static_cast<std::size_t>(head)]);
    };
    std::vector<int> order = {tree.top};
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const int child : tree.children[static_cast<std::size_t>(order[i])]) {
        if (child != BinaryTree::kNone) order.push_back(child);
      }
    }
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      std::vector<Slice> sums = {sum(*node)};
      for (const int child : tree.children[static_cast<std::size_t>(*node)]) {
        if (child != BinaryTree::kNone) sums.push_back(sum(child));
      }
      if (sums.size() > 1) builder_.combine(sums.front(), sums, {.lane = lane(up)});
    }
    for (const int node : order) {
      for (const int child : tree.children[static_cast<std::size_t>(node)]) {
        if (child == BinaryTree::kNone) continue;
        builder_.copy(sum(child), sum(node), {.lane = lane(down), .at = sum(child).place});
      }
    }
  }

  const NcclAlgorithm algorithm_;
  const int channels_;
  const std::vector<std::vector<int>> nodes_;  ///< their ranks
  const std::array<BinaryTree, 2> trees_;      ///< over the nodes
  const int heads_;                            ///< of a node
  const int shares_;                           ///< of a channel's chunk
  const NcclRounds rounds_;
  Builder builder_;
  int channel_ = 0;         ///< of the chunk in the making
  std::int64_t first_ = 0;  ///< its units
  std::int64_t length_ = 0;
};

}  // namespace

Program nccl_across_nodes(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  CHECK(choice.machine.nodes > 1);
  return AcrossNodes(request, bytes, choice).build();
}

}  // namespace espalier
