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

#include "algorithms/nccl_nodes.h"
#include "algorithms/nccl_rounds.h"
#include "algorithms/schedules.h"
#include "core/check.h"
#include "nccl/node_trees.h"
#include "topologies/turning_order.h"

namespace espalier {
namespace {

/// The ranks of every node, in a folded program in the order in which groups have them.
std::vector<std::vector<int>> ranks_in_turn(const NcclMachine& machine, const Fold& fold) {
  std::vector<std::vector<int>> nodes = nccl_ranks_by_node(machine);
  if (!fold.is_folded()) return nodes;
  for (std::vector<int>& ranks : nodes) {
    std::ranges::sort(ranks, {}, [&](int rank) { return fold.group_of(rank); });
  }
  return nodes;
}

int heads_of(const std::vector<std::vector<int>>& nodes) {
  return static_cast<int>(std::ranges::min(nodes, {}, &std::vector<int>::size).size());
}
/// Of a channel's chunk: one for every head, or all for one.
int shares_of(NcclAlgorithm algorithm, int heads) {
  return algorithm == NcclAlgorithm::collnet_chain ? 1 : heads;
}

class AcrossNodes {
 public:
  AcrossNodes(const BuildRequest& request, double bytes, const NcclChoice& choice)
      : algorithm_(choice.algorithm),
        channels_(choice.work.channels),
        nodes_(ranks_in_turn(choice.machine, request.fold)),
        trees_(nccl_node_trees(choice.machine.nodes)),
        heads_(heads_of(nodes_)),
        shares_(shares_of(algorithm_, heads_)),
        rounds_(NcclRounds::in_equal_shares(bytes, choice.work, shares_)),
        builder_("nccl", request.contract(rounds_.units()), request.fold) {}

  Program build() {
    const auto visit = [&](int channel, std::int64_t first, std::int64_t length) {
      channel_ = channel;
      for (int share = 0; share < shares_; ++share) {
        first_ = first + share * length;
        length_ = length;
        add(shares_ == 1 ? channel % heads_ : share);
      }
    };
    rounds_.for_each(
        visit, [&](std::int64_t units, std::int64_t times) { builder_.repeat(units, times); });
    return builder_.finish();
  }

 private:
  // The stages of a channel.
  enum Stage { gather, up, down, hand_out };
  static_assert(hand_out + 1 == kNcclStages);

  void add(int head) {
    if (!builder_.builds(nodes_.front()[static_cast<std::size_t>(head)], channel_)) return;
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

bool is_across_nodes(const NcclChoice& choice) {
  switch (choice.algorithm) {
    case NcclAlgorithm::nvls:
    case NcclAlgorithm::nvls_tree:
    case NcclAlgorithm::collnet_direct:
    case NcclAlgorithm::collnet_chain:
      return choice.machine.nodes > 1;
    default:
      return false;
  }
}

double ops_across_nodes(double bytes, const NcclChoice& choice) {
  const int heads = heads_of(nccl_ranks_by_node(choice.machine));
  const int shares = shares_of(choice.algorithm, heads);
  const auto visits = NcclRounds::in_equal_shares(bytes, choice.work, shares).visits();
  // By reads and writes of each of the others in place of the switch's.
  const bool is_in_switch =
      choice.algorithm == NcclAlgorithm::nvls || choice.algorithm == NcclAlgorithm::nvls_tree;
  const double of_node = kNcclStages + (is_in_switch ? 0 : choice.machine.ranks_per_node);
  return of_node * choice.machine.nodes * shares * static_cast<double>(visits);
}

std::optional<Fold> fold_nccl_across_nodes(const BuildRequest& request, double bytes,
                                           const NcclChoice& choice) {
  const std::vector<std::vector<int>> nodes = nccl_ranks_by_node(choice.machine);
  const int heads = heads_of(nodes);
  const int channels = choice.work.channels;
  // The chain's heads are the channels' and not the shares'.
  if (choice.algorithm == NcclAlgorithm::collnet_chain || heads == 1 ||
      !are_numbered_in_order(nodes)) {
    return std::nullopt;
  }
  // Half of the channels go over one tree, half over the other.
  const bool has_two = choice.algorithm == NcclAlgorithm::nvls_tree;
  const int lanes = !has_two ? channels : channels % 2 == 0 ? channels / 2 : 1;
  Fold fold{.groups = heads * lanes,
            .each = choice.machine.nodes,
            .adjacent = 1,
            .order = groups_in_turn(
                turning_order(request.router->topology(), gpus_of(request, nodes.front()))),
            .lanes = lanes,
            .lane_turn = Fold::LaneTurn::after_ranks};
  fold.turns.fill(NcclRounds::in_equal_shares(bytes, choice.work, heads).turns(fold.groups));
  return fold;
}

Program nccl_across_nodes(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  CHECK(is_across_nodes(choice));
  return AcrossNodes(request, bytes, choice).build();
}

}  // namespace espalier
