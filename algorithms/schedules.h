// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "ir/rings.h"
#include "ir/stripe.h"

// Arithmetic and stages that several algorithms share. Private to the room.

namespace espalier {

/// `value` modulo `n`, in [0, n), for value >= -n.
inline int wrap(int value, int n) { return (value + n) % n; }

/// Ranks are renumbered so that the root is 0 in most rooted schedules: back to the real rank.
inline int real_rank(const BuildRequest& request, int relative) {
  return wrap(relative + request.root, request.ranks);
}

/// One transfer of a k-nomial tree over 0..n-1 with root 0.
struct KnomialEdge {
  int round;  ///< 0 first, from the root down
  int parent;
  int child;
  int branch;  ///< 0..k-2: which of the children its parent serves in this round
  int span;    ///< the child's subtree is [child, child + span)
};

/// The k-nomial tree with contiguous subtrees, in the order of rounds: in round t every holder v
/// sends to v + s, v + 2s, ... v + (k-1)s where s = k^(R-1-t) and R = ceil(log_k n), as far as
/// those exist. Far ranks come first, so that ranks numbered machine by machine cross the network
/// least.
std::vector<KnomialEdge> knomial_edges(int n, int k);

/// `first` goes to order[1], from there to order[2], and so on, always into the units of the output
/// from `begin`. Every rank sends on `lane`.
void relay(Builder& builder, const std::vector<int>& order, const Slice& first, std::int64_t begin,
           int lane);

/// Where lanes grow with ranks and parameters, they are used again beyond these.
inline constexpr int kMaxLanes = 4096;

/// How many transfers a rank (or server) has in flight at once: sources read by one op, or lanes.
AlgorithmParameter at_once_parameter();

/// dst <- sources, folded in their order, at most `at_once` of other places read by one op. Where
/// dst is one of them, it must be the first.
void reduce_slices(Builder& builder, const Slice& dst, std::span<const Slice> sources, int at_once,
                   int lane);

/// dst <- the inputs' units [begin, begin + dst.length) of all ranks, beginning with rank `first`,
/// at most `at_once` remote ones read by one op. Where dst is a rank's own input (in place), that
/// rank must be `first`.
void reduce_all(Builder& builder, const Slice& dst, int first, std::int64_t begin, int at_once,
                int lane);

/// Calls copy(peer, lane) for every rank but `rank`, which must push to it on that lane of its own:
/// rank + 1 first, so that not all ranks begin with the same peer, on `at_once` lanes from
/// `first_lane` in turn.
template <typename Copy>
void push_to_others(int ranks, int rank, int at_once, int first_lane, Copy copy) {
  for (int distance = 1; distance < ranks; ++distance) {
    copy(wrap(rank + distance, ranks), first_lane + (distance - 1) % at_once);
  }
}

/// Allreduce of one unit by one rank: it combines that unit of all inputs (on `first_lane`) and
/// pushes the result to the others (on the next `at_once` lanes).
void reduce_and_hand_out(Builder& builder, int rank, std::int64_t unit, int first_lane,
                         int at_once);

/// Allreduce over slices of equal length, a multiple of their number n, that lie at different
/// places: part r (of n) is reduced on the way round the ring that ends at slice r, then goes round
/// again. Every place works on `lane`.
void ring_allreduce(Builder& builder, const std::vector<Slice>& slices, int lane);

/// The whole input of a rank, safe from peers that write over it: in place, a copy in scratch, made
/// on `lane`.
Slice saved_input(Builder& builder, int rank, int lane);

/// The host memory of a rank; the only one when the request names none.
int host_of(const BuildRequest& request, int rank);

/// "rank 3 cannot reach a host memory", or nothing if every rank has one.
std::optional<std::string> missing_host(const BuildRequest& request);

/// Percent of a copy between GPUs of one socket that goes through
/// their host memory; default 0. Tuning tries a few other values.
AlgorithmParameter host_share_parameter();

/// What the request's host_share asks for. \pre the algorithm has that parameter
Striping striping_of(const BuildRequest& request, std::int64_t pieces = 1);

/// The program with that share of it by way of host memory. Where there is nothing to divide the
/// request's notes say so.
Program striped(const Program& program, const BuildRequest& request, std::int64_t pieces = 1);

/// The ranks of every machine, in the order of first ranks; one machine without a placement.
std::vector<std::vector<int>> ranks_by_machine(const BuildRequest& request);

/// Whether ranks are numbered group by group, such as those of machines, with equally many in each.
bool are_numbered_in_order(const std::vector<std::vector<int>>& groups);

/// How programs fold whose groups of ranks, or several next to each other, do the same, each with
/// one unit of every share further on than the group before it. None where ranks are not numbered
/// group by group.
std::vector<Fold> folds_of_groups(const std::vector<std::vector<int>>& groups);

/// Where these ranks are. \pre there is a machine
std::vector<NodeId> gpus_of(const BuildRequest& request, const std::vector<int>& ranks);

}  // namespace espalier
