// SPDX-License-Identifier: Apache-2.0
// What NCCL's kernels do, block by block (NVIDIA/nccl src/device/*.h), in rounds (nccl_rounds.h). A
// block is sequential: it goes on to the next round when it has done its part of this one.
#include "algorithms/nccl_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "algorithms/nccl_across_nodes.h"
#include "algorithms/nccl_chunks.h"
#include "algorithms/nccl_rounds.h"
#include "algorithms/nccl_symmetric.h"
#include "algorithms/nccl_tree_program.h"
#include "algorithms/schedules.h"
#include "core/check.h"
#include "nccl/bridges.h"
#include "nccl/rails.h"

namespace espalier {
namespace {

/// Every rank has a block of its own that goes around.
bool goes_by_block(const BuildRequest& request) {
  return request.collective == Collective::allgather ||
         request.collective == Collective::reducescatter;
}

NcclRounds rounds_of_ring(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  const int n = request.ranks;
  const bool is_allreduce = request.collective == Collective::allreduce;
  return NcclRounds(goes_by_block(request) ? bytes / n : bytes, choice.work, is_allreduce ? n : 1)
      .without(request.rounds_left_out);
}

double ops_of_ring(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  const double n = request.ranks;
  const auto visits = static_cast<double>(rounds_of_ring(request, bytes, choice).visits());
  if (request.collective == Collective::allreduce) return 2 * n * (n - 1) * visits;
  if (goes_by_block(request)) return n * (n - 1) * visits;
  return (n - 1) * visits * static_cast<double>(nccl_parts(request, bytes, choice));
}

/// Calls visit(channel, part, most) for what channels carry, round by round: see RingChannel.
template <class Visit>
void for_each_part_of_rings(const BuildRequest& request, const NcclRounds& rounds,
                            const NcclChoice& choice, const Visit& visit) {
  const bool by_block = goes_by_block(request);
  const bool is_allreduce = request.collective == Collective::allreduce;
  const std::int64_t units = rounds.units();
  const std::int64_t all = by_block ? request.ranks * units : units;
  rounds.for_each([&](int channel, std::int64_t first, std::int64_t length) {
    const std::int64_t of_part = is_allreduce ? length : std::min(length, units - first);
    visit(channel, RingChannel::Part{first, by_block ? units : length, of_part, all},
          nccl_most_of_part(request, of_part, rounds.unit_bytes(), choice));
  });
}

Program ring_program(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  const NcclRounds rounds = rounds_of_ring(request, bytes, choice);
  const int blocks = goes_by_block(request) ? request.ranks : 1;
  Builder builder("nccl", request.contract(blocks * rounds.units()), request.fold);
  const bool has_relays = std::ranges::any_of(choice.graph.rings, [](const Ring& ring) {
    return std::ranges::any_of(ring.relays, [](int relay) { return relay >= 0; });
  });
  for_each_part_of_rings(request, rounds, choice,
                         [&](int channel, const RingChannel::Part& part, std::int64_t most) {
                           add_ring_channel(builder, {.ring = nccl_ring_of(choice.graph, channel),
                                                      .channel = channel,
                                                      .channels = choice.work.channels,
                                                      .pulled = has_relays,
                                                      .part = part,
                                                      .most = most,
                                                      .nodes = choice.machine.node_of_rank});
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
/// leaves a node through another GPU's NIC (PXN), or crosses it through a GPU that both have an
/// NVLink to (NVB), is copied to that GPU and fetched from there piece by piece; no block of that
/// GPU has a hand in it.
class SendsAndReceives {
 public:
  SendsAndReceives(const BuildRequest& request, double bytes, const NcclChoice& choice)
      : request_(request),
        machine_(choice.machine),
        rails_(choice.machine, *request.router, *request.placement, choice.graph.pxn),
        bridges_(choice.machine, *request.router, *request.placement, choice.version),
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
    if (!choice.graph.pxn && !choice.graph.nvb) return 1;
    const auto n = static_cast<std::int64_t>(request_.ranks);
    const double of_part = bytes / (is_pair() ? 1 : static_cast<double>(n)) / parts_;
    const double chunks = std::ceil(of_part / choice.work.chunk_bytes);
    const std::int64_t room = kMostOps / (n * n * parts_);
    return static_cast<int>(std::clamp<std::int64_t>(
        std::min(static_cast<std::int64_t>(std::min(chunks, 1e6)), room), 1, kMostPieces));
  }

  /// What one rank sends to another rests in the memory of this one on its way; of the sender: goes
  /// at once.
  int rests_at(int from, int to) const {
    const int by = rails_.sender(from, to);
    return by == from ? bridges_.between(from, to) : by;
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
    const int by = rests_at(from.place, to.place);
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
  const NcclBridges bridges_;
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

std::int64_t nccl_rounds(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  if (choice.algorithm == NcclAlgorithm::tree) return rounds_of_nccl_tree(request, bytes, choice);
  if (choice.algorithm != NcclAlgorithm::ring) return 0;
  return rounds_of_ring(request, bytes, choice).full_rounds();
}

std::vector<Fold> nccl_folds(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  std::optional<Fold> fold;
  if (is_across_nodes(choice)) fold = fold_nccl_across_nodes(request, bytes, choice);
  if (choice.algorithm == NcclAlgorithm::tree) fold = fold_nccl_tree(request, bytes, choice);
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
      return ops_of_nccl_tree(request, bytes, choice);
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

std::optional<std::string> nccl_recipe(const BuildRequest& request, double bytes,
                                       const NcclChoice& choice) {
  constexpr std::int64_t kMostParts = 1024;
  if (choice.algorithm != NcclAlgorithm::ring) return std::nullopt;
  const NcclRounds rounds = rounds_of_ring(request, bytes, choice);
  if (rounds.visits() > kMostParts || request.ranks > kMostParts) return std::nullopt;
  // Without format strings: it is written for each machine that somebody asks about.
  std::string text;
  const auto write = [&](const char* what, const auto& numbers) {
    text += what;
    for (const std::int64_t number : numbers) {
      const fmt::format_int digits(number);
      text.append(digits.data(), digits.size()) += ' ';
    }
  };
  using Numbers = std::initializer_list<std::int64_t>;
  write("units, channels ", Numbers{rounds.units(), choice.work.channels});
  write("nodes ", choice.machine.node_of_rank);
  for (const Ring& ring : choice.graph.rings) {
    write("ring ", ring.order);
    write("relays ", ring.relays);
  }
  for_each_part_of_rings(
      request, rounds, choice, [&](int channel, const RingChannel::Part& part, std::int64_t most) {
        write("part ", Numbers{channel, part.first, part.stride, part.length, part.end, most});
      });
  return text;
}

Program nccl_program(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  switch (choice.algorithm) {
    case NcclAlgorithm::ring:
      return ring_program(request, bytes, choice);
    case NcclAlgorithm::tree:
      return nccl_tree_program(request, bytes, choice);
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
