// SPDX-License-Identifier: Apache-2.0
// What NCCL's kernels do, block by block (NVIDIA/nccl src/device/*.h), in rounds (nccl_rounds.h). A
// block is sequential: it goes on to the next round when it has done its part of this one.
#include "algorithms/nccl_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "algorithms/nccl_across_nodes.h"
#include "algorithms/nccl_nodes.h"
#include "algorithms/nccl_rounds.h"
#include "algorithms/nccl_symmetric.h"
#include "algorithms/schedules.h"
#include "core/check.h"
#include "ir/binary_tree.h"
#include "nccl/rails.h"

namespace espalier {
namespace {

/// The order that a channel goes round.
const Ring& ring_of(const NcclGraph& graph, int channel) {
  return graph.rings[static_cast<std::size_t>(channel) % graph.rings.size()];
}

/// Every rank has a block of its own that goes around.
bool goes_by_block(const BuildRequest& request) {
  return request.collective == Collective::allgather ||
         request.collective == Collective::reducescatter;
}

NcclRounds rounds_of_ring(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  const int n = request.ranks;
  const bool is_allreduce = request.collective == Collective::allreduce;
  return {goes_by_block(request) ? bytes / n : bytes, choice.work, is_allreduce ? n : 1};
}

/// The parts of a chunk that are passed on one after the other (nccl_part_bytes).
std::int64_t parts_of_chunk(const BuildRequest& request, double chunk_bytes,
                            const NcclChoice& choice) {
  constexpr double kMostParts = 8;  // more would take hardly less time
  const double part_bytes = nccl_part_bytes(request.collective, choice.algorithm, choice.protocol,
                                            choice.work.threads, choice.machine);
  const double wanted = part_bytes > 0 ? std::ceil(chunk_bytes / part_bytes) : 1;
  return static_cast<std::int64_t>(std::clamp(wanted, 1.0, kMostParts));
}

/// Units of a part, at most, of a chunk of so many.
std::int64_t most_of_part(const BuildRequest& request, std::int64_t chunk, double unit_bytes,
                          const NcclChoice& choice) {
  const std::int64_t number =
      parts_of_chunk(request, static_cast<double>(chunk) * unit_bytes, choice);
  return (chunk + number - 1) / number;
}

/// The parts of a full chunk.
std::int64_t most_parts(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  return parts_of_chunk(request, std::min(choice.work.chunk_bytes, bytes / choice.work.channels),
                        choice);
}

double ops_of_ring(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  const double n = request.ranks;
  const auto visits = static_cast<double>(rounds_of_ring(request, bytes, choice).visits());
  if (request.collective == Collective::allreduce) return 2 * n * (n - 1) * visits;
  if (goes_by_block(request)) return n * (n - 1) * visits;
  return (n - 1) * visits * static_cast<double>(most_parts(request, bytes, choice));
}

Program ring_program(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  const bool by_block = goes_by_block(request);
  const bool is_allreduce = request.collective == Collective::allreduce;
  const int n = request.ranks;
  const NcclRounds rounds = rounds_of_ring(request, bytes, choice);
  const std::int64_t units = rounds.units();
  const std::int64_t all = by_block ? n * units : units;
  Builder builder("nccl", request.contract(all), request.fold);
  const bool has_relays = std::ranges::any_of(choice.graph.rings, [](const Ring& ring) {
    return std::ranges::any_of(ring.relays, [](int relay) { return relay >= 0; });
  });
  const double unit_bytes = bytes / static_cast<double>(all);
  rounds.for_each([&](int channel, std::int64_t first, std::int64_t length) {
    const std::int64_t of_part = is_allreduce ? length : std::min(length, units - first);
    add_ring_channel(builder,
                     {.ring = ring_of(choice.graph, channel),
                      .channel = channel,
                      .channels = choice.work.channels,
                      .pulled = has_relays,
                      .part = RingChannel::Part{first, by_block ? units : length, of_part, all},
                      .most = most_of_part(request, of_part, unit_bytes, choice)});
  });
  return builder.finish();
}

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
      two_trees(static_cast<int>(chains.size()))[static_cast<std::size_t>(half)];
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

NcclRounds rounds_of_tree(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  if (choice.machine.nodes == 1) return {bytes, choice.work, 1};
  const auto cuts = static_cast<int>(most_parts(request, bytes, choice));
  return NcclRounds::in_equal_shares(bytes, choice.work, 1, cuts);
}

double ops_of_tree(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  const auto visits = static_cast<double>(rounds_of_tree(request, bytes, choice).visits());
  return 2.0 * request.ranks * visits * static_cast<double>(most_parts(request, bytes, choice));
}

/// By channel.
std::vector<RankTree> trees_of(const NcclChoice& choice) {
  std::vector<RankTree> trees;
  const int channels = choice.work.channels;
  for (int channel = 0; channel < channels; ++channel) {
    const auto chains = chains_of(choice.machine, ring_of(choice.graph, channel));
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

/// Where every channel's tree is that of the channel before, with every rank of a node moved on to
/// the next.
std::optional<Fold> fold_tree(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  const std::vector<std::vector<int>> nodes = nccl_ranks_by_node(choice.machine);
  const int channels = choice.work.channels;
  const auto groups = static_cast<int>(nodes.front().size());
  const bool is_rooted = info(request.collective).rooted;
  if (nodes.size() == 1 || groups == 1 || is_rooted || !are_numbered_by_node(nodes)) {
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

Program tree_program(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  const NcclRounds rounds = rounds_of_tree(request, bytes, choice);
  Builder builder("nccl", request.contract(rounds.units()), request.fold);
  const int channels = choice.work.channels;
  const std::vector<RankTree> trees = trees_of(choice);
  const double unit_bytes = bytes / static_cast<double>(rounds.units());
  std::vector<int> passed(static_cast<std::size_t>(channels));
  std::vector<TreeRound> at_once;
  rounds.for_each([&](int channel, std::int64_t first, std::int64_t length) {
    ChunkParts parts{first, std::min(length, rounds.units() - first)};
    parts.most = most_of_part(request, parts.length, unit_bytes, choice);
    const bool is_odd = passed[static_cast<std::size_t>(channel)]++ % 2 == 1;
    const int down = channels + channel;
    at_once.emplace_back(builder, choice.machine, trees[static_cast<std::size_t>(channel)], parts,
                         TreeRound::Lanes{channel, down, is_odd ? down : channel});
    if ((channel + 1) % request.fold.lanes != 0) return;
    TreeRound::add(at_once);
    at_once.clear();
  });
  return builder.finish();
}

/// Parallel aggregated trees: every block goes down a binomial tree of its own, in as many steps
/// as the number of ranks has bits, each with more blocks than the one before; a reducescatter is
/// the same backwards. The blocks of a step may wrap around: two slices.
class AggregatedTrees {
 public:
  AggregatedTrees(const BuildRequest& request, const NcclRounds& rounds, int channels)
      : request_(request),
        rounds_(rounds),
        channels_(channels),
        builder_("nccl", request.contract(request.ranks * rounds.units())) {}

  Program build() {
    const int n = request_.ranks;
    std::vector<int> distances;
    for (int distance = 1; distance < n; distance *= 2) distances.push_back(distance);
    const bool gathers = request_.collective == Collective::allgather;
    rounds_.for_each([&](int channel, std::int64_t first, std::int64_t length) {
      const std::int64_t size = std::min(length, rounds_.units() - first);
      if (gathers) {
        for (const int distance : distances) gather(distance, channel, first, size);
        for (int rank = 0; rank < n; ++rank) {
          builder_.copy(builder_.output(rank, block(rank) + first, size),
                        builder_.input(rank, first, size), {.lane = channels_ + channel});
        }
        return;
      }
      std::vector<bool> has_sum(static_cast<std::size_t>(n) * static_cast<std::size_t>(n), false);
      for (auto distance = distances.rbegin(); distance != distances.rend(); ++distance) {
        scatter(*distance, channel, first, size, has_sum);
      }
    });
    return builder_.finish();
  }

 private:
  std::int64_t block(int rank) const { return rank * rounds_.units(); }
  std::size_t pair(int rank, int of) const {
    return static_cast<std::size_t>(rank) * static_cast<std::size_t>(request_.ranks) +
           static_cast<std::size_t>(of);
  }

  /// Rank r gets the blocks that r + distance has by now.
  void gather(int distance, int lane, std::int64_t first, std::int64_t size) {
    const int n = request_.ranks;
    for (int rank = 0; rank < n; ++rank) {
      const int from = (rank + distance) % n;
      for (int i = 0; i < std::min(distance, n - distance); ++i) {
        const int of = (from + i) % n;
        const Slice held = i == 0 ? builder_.input(from, first, size)
                                  : builder_.output(from, block(of) + first, size);
        builder_.copy(builder_.output(rank, block(of) + first, size), held, {.lane = lane});
      }
    }
  }

  /// Rank r passes what it has of the blocks that r + distance is to have by then.
  void scatter(int distance, int lane, std::int64_t first, std::int64_t size,
               std::vector<bool>& has_sum) {
    const int n = request_.ranks;
    const auto held = [&](int rank, int of) {
      if (!has_sum[pair(rank, of)]) return builder_.input(rank, block(of) + first, size);
      return sum(rank, of, first, size);
    };
    for (int rank = 0; rank < n; ++rank) {
      const int to = (rank + distance) % n;
      for (int i = 0; i < std::min(distance, n - distance); ++i) {
        const int of = (to + i) % n;
        builder_.combine(sum(to, of, first, size), {held(rank, of), held(to, of)}, {.lane = lane});
        has_sum[pair(to, of)] = true;
      }
    }
  }

  Slice sum(int rank, int of, std::int64_t first, std::int64_t size) {
    if (rank == of) return builder_.output(rank, first, size);
    return builder_.contract().in_place ? builder_.input(rank, block(of) + first, size)
                                        : builder_.tmp(rank, block(of) + first, size);
  }

  const BuildRequest& request_;
  const NcclRounds& rounds_;
  const int channels_;
  Builder builder_;
};

/// Sends and receives: every pair has some channels, each with an equal part of what it sends. What
/// leaves a node through another GPU's NIC (PXN) is copied to that GPU and fetched from there piece
/// by piece; no block of that GPU has a hand in it.
class SendsAndReceives {
 public:
  SendsAndReceives(const BuildRequest& request, double bytes, const NcclChoice& choice)
      : request_(request),
        machine_(choice.machine),
        rails_(choice.machine, *request.router, *request.placement, choice.graph.pxn),
        blocks_(nccl_p2p_blocks(choice.graph)),
        parts_(choice.work.channels),
        pieces_(pieces(bytes, choice)),
        block_(static_cast<std::int64_t>(parts_) * pieces_),
        builder_("nccl", request.contract(is_pair() ? block_ : request.ranks * block_)) {
    std::map<int, int> ranks_of_node;
    for (const int node : machine_.node_of_rank) number_in_node_.push_back(ranks_of_node[node]++);
  }

  Program build() {
    const int n = request_.ranks;
    const int root = request_.root;
    switch (request_.collective) {
      case Collective::gather:
        for (int rank = 0; rank < n; ++rank) {
          send(builder_.output(root, rank * block_, block_), builder_.input(rank, 0, block_),
               wrap(root - rank, n));
        }
        break;
      case Collective::scatter:
        for (int rank = 0; rank < n; ++rank) {
          send(builder_.output(rank, 0, block_), builder_.input(root, rank * block_, block_),
               wrap(rank - root, n));
        }
        break;
      default:
        send_to_all();
    }
    return builder_.finish();
  }

 private:
  /// Pieces that a part is passed on in, at most: more would take no less time.
  static constexpr int kMostPieces = 16;
  /// Of all ranks' parts together, about.
  static constexpr std::int64_t kMostOps = std::int64_t{1} << 21;

  bool is_pair() const { return request_.collective == Collective::sendrecv; }

  int pieces(double bytes, const NcclChoice& choice) const {
    if (!choice.graph.pxn) return 1;
    const auto n = static_cast<std::int64_t>(request_.ranks);
    const double of_part = bytes / (is_pair() ? 1 : static_cast<double>(n)) / parts_;
    const double chunks = std::ceil(of_part / choice.work.chunk_bytes);
    const std::int64_t room = kMostOps / (n * n * parts_);
    return static_cast<int>(std::clamp<std::int64_t>(
        std::min(static_cast<std::int64_t>(std::min(chunks, 1e6)), room), 1, kMostPieces));
  }

  void send_to_all() {
    const int n = request_.ranks;
    for (int distance = is_pair() ? 1 : 0; distance < (is_pair() ? 2 : n); ++distance) {
      for (int rank = 0; rank < n; ++rank) {
        const int peer = wrap(rank + distance, n);
        send(builder_.output(peer, is_pair() ? 0 : rank * block_, block_),
             builder_.input(rank, is_pair() ? 0 : peer * block_, block_), distance);
      }
    }
  }

  void send(const Slice& to, const Slice& from, int distance) {
    const int by = rails_.sender(from.place, to.place);
    for (int part = 0; part < parts_; ++part) {
      const int lane = (distance * parts_ + part) % blocks_;
      if (by == from.place) {
        builder_.copy(some(to, part * pieces_, pieces_), some(from, part * pieces_, pieces_),
                      {.lane = lane});
        continue;
      }
      // Each rank of a node has room of its own in the others' memories.
      Slice resting = from;
      resting.place = by;
      resting.buffer = Buffer::tmp;
      resting.begin +=
          number_in_node_[static_cast<std::size_t>(from.place)] * builder_.contract().units;
      for (int piece = part * pieces_; piece < (part + 1) * pieces_; ++piece) {
        builder_.copy(some(resting, piece, 1), some(from, piece, 1), {.lane = lane});
        builder_.copy(some(to, piece, 1), some(resting, piece, 1),
                      {.lane = blocks_ + lane, .at = to.place});
      }
    }
  }

  static Slice some(Slice slice, std::int64_t first, std::int64_t length) {
    slice.begin += first;
    slice.length = length;
    return slice;
  }

  const BuildRequest& request_;
  const NcclMachine& machine_;
  const NcclRails rails_;
  const int blocks_;
  const int parts_;           ///< of what a pair sends: a channel each
  const int pieces_;          ///< of a part
  const std::int64_t block_;  ///< units that a pair sends
  Builder builder_;
  std::vector<int> number_in_node_;  ///< by rank
};

/// In the node's switches: as the algorithm `nvls` does.
Program switch_program(BuildRequest request, const NcclChoice& choice) {
  request.parameters = {{"channels", choice.work.channels}};
  Program program = find_algorithm("nvls")->build(request);
  program.name = "nccl";
  return program;
}

}  // namespace

std::vector<Fold> nccl_folds(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  std::optional<Fold> fold;
  if (is_across_nodes(choice)) fold = fold_nccl_across_nodes(request, bytes, choice);
  if (choice.algorithm == NcclAlgorithm::tree) fold = fold_tree(request, bytes, choice);
  if (fold) return {*fold};
  if (choice.algorithm != NcclAlgorithm::ring || !goes_by_block(request)) return {};
  const std::int64_t units = rounds_of_ring(request, bytes, choice).units();
  return folds_of_rings(request.contract(request.ranks * units), choice.graph.rings);
}

double nccl_ops(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  const double n = request.ranks;
  switch (choice.algorithm) {
    case NcclAlgorithm::ring:
      return ops_of_ring(request, bytes, choice);
    case NcclAlgorithm::tree:
      return ops_of_tree(request, bytes, choice);
    case NcclAlgorithm::pat: {
      const auto visits = NcclRounds(bytes / n, choice.work, 1).visits();
      return n * n * static_cast<double>(visits);
    }
    case NcclAlgorithm::p2p:
      return (request.collective == Collective::alltoall ? n * n : n) * choice.work.channels;
    default:
      return is_across_nodes(choice) ? ops_across_nodes(bytes, choice)
                                     : n * n * choice.work.channels;  // a machine's ranks
  }
}

Program nccl_program(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  switch (choice.algorithm) {
    case NcclAlgorithm::ring:
      return ring_program(request, bytes, choice);
    case NcclAlgorithm::tree:
      return tree_program(request, bytes, choice);
    case NcclAlgorithm::pat: {
      const NcclRounds rounds(bytes / request.ranks, choice.work, 1);
      return AggregatedTrees(request, rounds, choice.work.channels).build();
    }
    case NcclAlgorithm::p2p:
      return SendsAndReceives(request, bytes, choice).build();
    case NcclAlgorithm::symmetric:
      return nccl_symmetric_program(request, bytes, choice);
    case NcclAlgorithm::nvls:
      if (choice.machine.nodes == 1) return switch_program(request, choice);
      [[fallthrough]];
    case NcclAlgorithm::nvls_tree:
    case NcclAlgorithm::collnet_direct:
    case NcclAlgorithm::collnet_chain:
      return nccl_across_nodes(request, bytes, choice);
  }
  CHECK(false);
}

}  // namespace espalier
