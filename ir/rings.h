// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/builder.h"

// What rings of any order have in common, wherever the order comes from.

namespace espalier {

/// A ring through all ranks.
struct Ring {
  std::vector<int> order;  ///< ranks; after the last comes the first again
  std::vector<int>
      relays;  ///< for each hop from order[i] to the next: the rank that relays it, or -1

  /// Also what a ring looks like from the other direction.
  Ring reversed() const;
  bool operator==(const Ring&) const = default;
};

/// One way round a ring, with a share of the message. The channel is also the lane of its
/// transfers.
struct RingChannel {
  Ring ring;  ///< data goes from ring.order[0] to ring.order[1] and so on; relays need `pulled`
  int channel = 0;
  int channels = 1;
  /// Copies, like combines, run at the receiver, so that one lane orders everything that a hop
  /// carries. Channels that share a bundle of links then get equal parts of it: a channel that is
  /// ahead would otherwise send its next stage beside its last one and slow down the others.
  bool pulled = false;
  /// What of chunk k it carries: `length` units from `first` + k * `stride` on, none of them at or
  /// beyond `end`.
  struct Part {
    std::int64_t first = 0;
    std::int64_t stride = 0;
    std::int64_t length = 0;
    std::int64_t end = 0;
  };
  /// Not given: of the `channels` units that a chunk (or the message, or a block) has, unit
  /// `channel`.
  std::optional<Part> part = {};
  /// A broadcast or reduce passes on what it carries in parts of so many units at most, each right
  /// behind the one before it; 0: as a whole.
  std::int64_t most = 0;
  /// The node of each rank: from one to another it is passed on as a whole. Empty: there is but
  /// one.
  std::vector<int> nodes = {};

  int ranks() const { return static_cast<int>(ring.order.size()); }
  /// Positions repeat: this one in [0, ranks).
  int wrapped(int position) const { return (position % ranks() + ranks()) % ranks(); }
  int rank_at(int position) const {
    return ring.order[static_cast<std::size_t>(wrapped(position))];
  }
  /// The units of chunk 0, wherever they are counted from.
  std::int64_t first() const { return part ? part->first : channel; }
  std::int64_t begin(int chunk) const {
    return first() + std::int64_t{chunk} * (part ? part->stride : channels);
  }
  std::int64_t length(int chunk) const {
    if (!part) return 1;
    return std::clamp<std::int64_t>(part->end - begin(chunk), 0, part->length);
  }
};

/// The channels of a set of rings: each forward, or forward and backward.
std::vector<RingChannel> ring_channels(const std::vector<Ring>& rings, bool both_ways,
                                       bool pulled = false);

/// Number of units that a message needs for these channels in a collective.
std::int64_t ring_units(Collective collective, int ranks, std::size_t channels);

/// Where every ring comes to the next group as it came to the one before: `turned_by_blocks`.
std::vector<Fold> folds_of_rings(const Contract& contract, const std::vector<Ring>& rings);

/// Adds the part of the collective that the channel carries; with one rank, what that rank keeps.
/// \pre the collective is allreduce, broadcast, reduce, allgather or reducescatter, and the
/// builder's contract has ring_units(...), or as many as the channels' parts need
void add_ring_channel(Builder& builder, const RingChannel& channel);

/// Where a rank gathers partial results of a reduction, units counted from the start of the
/// message: its output if it has one, its input when that may be overwritten (in place), scratch
/// otherwise.
Slice accumulator(const Builder& builder, int rank, std::int64_t begin, std::int64_t length);

/// Copies input to output on the same rank, on a lane of its own so that it delays no transfer.
/// Nothing to do in place.
void keep_own(Builder& builder, int rank, std::int64_t begin, std::int64_t length, int lane);

}  // namespace espalier
