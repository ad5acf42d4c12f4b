// SPDX-License-Identifier: Apache-2.0
#include "algorithms/nccl_tree_program.h"

#include <algorithm>
#include <map>
#include <span>

#include "algorithms/nccl_chunks.h"
#include "algorithms/nccl_nodes.h"
#include "algorithms/nccl_rounds.h"
#include "algorithms/schedules.h"
#include "nccl/node_trees.h"

namespace espalier {
namespace {

/// A tree over the ranks: each node's in a chain, whose heads are the nodes of a binary tree.
struct RankTree {
  int top = 0;
  std::vector<std::vector<int>> children;  ///< by rank
  std::vector<int> order;                  ///< from the top down, ranks as near to it together
};

/// `half`: which of two binary trees joins the nodes.
RankTree rank_tree(const std::vector<std::vector<int>>& chains, int half) {
  RankTree tree;
  std::size_t ranks = 0;
  for (const std::vector<int>& chain : chains) ranks += chain.size();
  tree.children.resize(ranks);
  for (const std::vector<int>& chain : chains) {
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
      tree.children[static_cast<std::size_t>(chain[i])].push_back(chain[i + 1]);
    }
  }
  const BinaryTree of_nodes =
      nccl_node_trees(static_cast<int>(chains.size()))[static_cast<std::size_t>(half)];
  const auto head = [&](int node) { return chains[static_cast<std::size_t>(node)].front(); };
  for (std::size_t node = 0; node < chains.size(); ++node) {
    for (const int child : of_nodes.children[node]) {
      if (child == BinaryTree::kNone) continue;
      tree.children[static_cast<std::size_t>(head(static_cast<int>(node)))].push_back(head(child));
    }
  }
  tree.top = head(of_nodes.top);
  // Chains are as long as a node has ranks: no recursion along them.
  tree.order = {tree.top};
  for (std::size_t i = 0; i < tree.order.size(); ++i) {
    const std::vector<int>& children = tree.children[static_cast<std::size_t>(tree.order[i])];
    tree.order.insert(tree.order.end(), children.begin(), children.end());
  }
  return tree;
}

/// The ranks of every node in the order in which a ring passes them, those before the first node's
/// last.
std::vector<std::vector<int>> chains_of(const NcclMachine& machine, const Ring& ring) {
  std::vector<std::vector<int>> chains;
  if (machine.nodes == 1) return {ring.order};
  std::map<int, std::size_t> chain_of_node;
  // From where a new node begins, so that no node's ranks are torn apart.
  std::size_t start = 0;
  const std::size_t n = ring.order.size();
  const auto node_at = [&](std::size_t at) { return machine.node_of(ring.order[at % n]); };
  while (start < n && node_at(start) == node_at(start + n - 1)) ++start;
  for (std::size_t i = 0; i < n; ++i) {
    const auto [known, is_new] = chain_of_node.try_emplace(node_at(start + i), chains.size());
    if (is_new) chains.emplace_back();
    chains[known->second].push_back(ring.order[(start + i) % n]);
  }
  return chains;
}

/// A chunk, and the parts of it that are passed on one after the other.
struct ChunkParts {
  std::int64_t first = 0;
  std::int64_t length = 0;
  std::int64_t most = 0;  ///< units of a part

  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::int64_t done = 0; done < length; done += most) {
      visit(first + done, std::min(most, length - done));
    }
  }
  ChunkParts as_a_whole() const { return {first, length, length}; }
};

/// Up the tree on one lane of the channel, down on another: a part of its threads each. The top has
/// all of them for both, as its sums are what it hands out: its chunks take turns on the two lanes.
/// Between nodes chunks go as a whole: proxies wait for all of their lines (src/transport/net.cc).
class TreeRound {
 public:
  struct Lanes {
    int up = 0;
    int down = 0;
    int top = 0;
  };

  TreeRound(Builder& builder, const NcclMachine& machine, const RankTree& tree,
            const ChunkParts& parts, const Lanes& lanes)
      : builder_(builder), machine_(machine), tree_(tree), parts_(parts), lanes_(lanes) {}

  /// Rounds of as many channels, which a folded program has one group after the other: what a rank
  /// of its first group waits for is another channel's. \pre they have the same tree, moved
  static void add(std::span<const TreeRound> channels) {
    const std::vector<int>& order = channels.front().tree_.order;
    for (std::size_t i = order.size(); i-- > 0;) {
      for (const TreeRound& round : channels) round.reduce(round.tree_.order[i]);
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const TreeRound& round : channels) {
        const int rank = round.tree_.order[i];
        for (const int child : round.children(rank)) round.hand_on(rank, child);
      }
    }
  }

 private:
  const std::vector<int>& children(int rank) const {
    return tree_.children[static_cast<std::size_t>(rank)];
  }

  bool share_node(int rank, int other) const {
    return machine_.node_of(rank) == machine_.node_of(other);
  }

  void reduce(int rank) const {
    if (children(rank).empty() || !builder_.builds(rank)) return;
    const bool is_within =
        std::ranges::all_of(children(rank), [&](int child) { return share_node(rank, child); });
    const ChunkParts parts = is_within ? parts_ : parts_.as_a_whole();
    parts.for_each([&](std::int64_t first, std::int64_t length) {
      std::vector<Slice> sources = {builder_.input(rank, first, length)};
      for (const int child : children(rank)) {
        sources.push_back(children(child).empty() ? builder_.input(child, first, length)
                                                  : builder_.output(child, first, length));
      }
      builder_.combine(builder_.output(rank, first, length), sources,
                       {.lane = rank == tree_.top ? lanes_.top : lanes_.up});
    });
  }

  void hand_on(int rank, int child) const {
    if (!builder_.builds(child)) return;
    const ChunkParts parts = share_node(rank, child) ? parts_ : parts_.as_a_whole();
    parts.for_each([&](std::int64_t first, std::int64_t length) {
      builder_.copy(builder_.output(child, first, length), builder_.output(rank, first, length),
                    {.lane = lanes_.down, .at = child});
    });
  }

  Builder& builder_;
  const NcclMachine& machine_;
  const RankTree& tree_;
  ChunkParts parts_;
  Lanes lanes_;
};

/// At the top of a tree, sums and copies take turns in handing out a round.
constexpr int kTurns = 2;

NcclRounds rounds_of_tree(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  const std::int64_t left_out = kTurns * request.rounds_left_out;
  if (choice.machine.nodes == 1) return NcclRounds(bytes, choice.work, 1).without(left_out);
  const auto cuts = static_cast<int>(nccl_parts(request, bytes, choice));
  return NcclRounds::in_equal_shares(bytes, choice.work, 1, cuts).without(left_out);
}

/// By channel.
std::vector<RankTree> trees_of(const NcclChoice& choice) {
  std::vector<RankTree> trees;
  const int channels = choice.work.channels;
  for (int channel = 0; channel < channels; ++channel) {
    const auto chains = chains_of(choice.machine, nccl_ring_of(choice.graph, channel));
    trees.push_back(rank_tree(chains, 2 * channel < channels ? 0 : 1));
  }
  return trees;
}

/// Whether one tree is the other one, with every rank moved on by one group.
bool is_next(const RankTree& next, const RankTree& tree, const Fold& fold) {
  if (next.top != fold.rank_moved(tree.top, 1)) return false;
  for (std::size_t rank = 0; rank < tree.children.size(); ++rank) {
    const auto moved = static_cast<std::size_t>(fold.rank_moved(static_cast<int>(rank), 1));
    const std::vector<int>& children = tree.children[rank];
    const bool is_alike = std::ranges::equal(
        next.children[moved], children,
        [&](int child, int of_tree) { return child == fold.rank_moved(of_tree, 1); });
    if (!is_alike) return false;
  }
  return true;
}

}  // namespace

double ops_of_nccl_tree(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  const auto visits = static_cast<double>(rounds_of_tree(request, bytes, choice).visits());
  return 2.0 * request.ranks * visits * static_cast<double>(nccl_parts(request, bytes, choice));
}

std::int64_t rounds_of_nccl_tree(const BuildRequest& request, double bytes,
                                 const NcclChoice& choice) {
  return rounds_of_tree(request, bytes, choice).full_rounds() / kTurns;
}

std::optional<Fold> fold_nccl_tree(const BuildRequest& request, double bytes,
                                   const NcclChoice& choice) {
  const std::vector<std::vector<int>> nodes = nccl_ranks_by_node(choice.machine);
  const int channels = choice.work.channels;
  const auto groups = static_cast<int>(nodes.front().size());
  const bool is_rooted = info(request.collective).rooted;
  if (nodes.size() == 1 || groups == 1 || is_rooted || !are_numbered_in_order(nodes)) {
    return std::nullopt;
  }
  if (channels % groups != 0) return std::nullopt;
  Fold fold{.groups = groups, .each = choice.machine.nodes, .adjacent = 1, .lanes = groups};
  fold.turns.fill(rounds_of_tree(request, bytes, choice).turns(groups));
  const std::vector<RankTree> trees = trees_of(choice);
  for (int channel = 0; channel < channels; ++channel) {
    const auto next = static_cast<std::size_t>(fold.lane_moved(0, channel, 1));
    if (!is_next(trees[next], trees[static_cast<std::size_t>(channel)], fold)) return std::nullopt;
  }
  return fold;
}

Program nccl_tree_program(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  const NcclRounds rounds = rounds_of_tree(request, bytes, choice);
  Builder builder("nccl", request.contract(rounds.units()), request.fold);
  const int channels = choice.work.channels;
  const std::vector<RankTree> trees = trees_of(choice);
  std::vector<int> passed(static_cast<std::size_t>(channels));
  std::vector<TreeRound> at_once;
  rounds.for_each([&](int channel, std::int64_t first, std::int64_t length) {
    ChunkParts parts{first, std::min(length, rounds.units() - first)};
    parts.most = nccl_most_of_part(request, parts.length, rounds.unit_bytes(), choice);
    const bool is_odd = passed[static_cast<std::size_t>(channel)]++ % kTurns == 1;
    const int down = channels + channel;
    at_once.emplace_back(builder, choice.machine, trees[static_cast<std::size_t>(channel)], parts,
                         TreeRound::Lanes{channel, down, is_odd ? down : channel});
    if ((channel + 1) % request.fold.lanes != 0) return;
    TreeRound::add(at_once);
    at_once.clear();
  });
  return builder.finish();
}

}  // namespace espalier
