// SPDX-License-Identifier: Apache-2.0
#include "ir/rings.h"

#include <algorithm>

#include "core/check.h"

namespace espalier {

namespace {

/// Lanes of a place: for every channel one for its transfers, one for what it keeps and one to hand
/// data to a relay.
int local_lane(const RingChannel& ring) { return ring.channels + ring.channel; }
int to_relay_lane(const RingChannel& ring) { return 2 * ring.channels + ring.channel; }

int relay_after(const RingChannel& ring, int position) {
  return ring.ring.relays[static_cast<std::size_t>(ring.wrapped(position))];
}

/// The position's data where the next rank can read it: at the relay, if the hop has one.
/// Positions whose hops share a relay have scratch of their own there; that of all accumulators
/// comes first.
Slice within_reach(Builder& builder, const RingChannel& ring, int position, std::int64_t unit,
                   const Slice& data) {
  const int hop = ring.wrapped(position);
  const int relay = relay_after(ring, hop);
  if (relay < 0) return data;
  const auto relays = ring.ring.relays.begin();
  const std::int64_t area = 1 + std::count(relays, relays + hop, relay);
  const Slice resting = builder.tmp(relay, area * builder.contract().units + unit, data.length);
  builder.copy(resting, data, {.lane = to_relay_lane(ring)});
  return resting;
}

/// Copies the position's data to the next rank.
void pass_on(Builder& builder, const RingChannel& ring, int position, std::int64_t unit,
             const Slice& to, const Slice& data) {
  if (ring.pulled) {
    builder.copy(to, within_reach(builder, ring, position, unit, data),
                 {.lane = ring.channel, .at = to.place});
  } else {
    CHECK(relay_after(ring, position) < 0);
    builder.copy(to, data, {.lane = ring.channel});
  }
}

/// Where the ranks stand whose ops are built: all, unless the program is folded.
std::vector<int> built_positions(const Builder& builder, const RingChannel& ring, int ahead = 0) {
  std::vector<int> positions;
  for (int position = 0; position < ring.ranks(); ++position) {
    if (builder.builds(ring.rank_at(position + ahead))) positions.push_back(position);
  }
  return positions;
}

/// n - 1 steps; in each, every rank adds its own part of a chunk to what its predecessor has of it.
/// Chunk r ends at rank r: it starts one position further and travels all the way round.
/// `partial(rank, chunk, last)` is where a rank puts what it has combined so far.
template <typename Partial>
void reduce_scatter_stage(Builder& builder, const RingChannel& ring, Partial partial) {
  const int n = ring.ranks();
  const std::vector<int> positions = built_positions(builder, ring);
  for (int step = 1; step < n; ++step) {
    for (const int position : positions) {
      const int rank = ring.rank_at(position);
      const int previous = ring.rank_at(position - 1);
      const int chunk = ring.rank_at(position - 1 - step);
      const std::int64_t unit = ring.begin(chunk);
      const std::int64_t length = ring.length(chunk);
      if (length == 0) continue;
      const Slice own = builder.input(rank, unit, length);
      const Slice sent =
          step == 1 ? builder.input(previous, unit, length) : partial(previous, chunk, false);
      const Slice received = within_reach(builder, ring, position - 1, unit, sent);
      builder.combine(partial(rank, chunk, step == n - 1), {received, own}, {.lane = ring.channel});
    }
  }
}

/// n - 1 steps; in each, every rank passes on the chunk it got last, its own (`own(rank)`) first.
template <typename Own>
void allgather_stage(Builder& builder, const RingChannel& ring, Own own) {
  const int n = ring.ranks();
  // Ops are the receiver's where it pulls.
  const std::vector<int> positions = built_positions(builder, ring, ring.pulled ? 1 : 0);
  for (int step = 1; step < n; ++step) {
    for (const int position : positions) {
      const int rank = ring.rank_at(position);
      const int next = ring.rank_at(position + 1);
      const int chunk = ring.rank_at(position + 1 - step);
      const std::int64_t unit = ring.begin(chunk);
      const std::int64_t length = ring.length(chunk);
      if (length == 0) continue;
      const Slice held = step == 1 ? own(rank) : builder.output(rank, unit, length);
      pass_on(builder, ring, position, unit, builder.output(next, unit, length), held);
    }
  }
}

void add_allreduce(Builder& builder, const RingChannel& ring) {
  reduce_scatter_stage(builder, ring, [&](int rank, int chunk, bool) {
    return builder.output(rank, ring.begin(chunk), ring.length(chunk));
  });
  allgather_stage(builder, ring, [&](int rank) {
    return builder.output(rank, ring.begin(rank), ring.length(rank));
  });
}

void add_allgather(Builder& builder, const RingChannel& ring) {
  const auto own = [&](int rank) { return builder.input(rank, ring.first(), ring.length(rank)); };
  allgather_stage(builder, ring, own);
  for (int rank = 0; rank < ring.ranks(); ++rank) {
    builder.copy(builder.output(rank, ring.begin(rank), ring.length(rank)), own(rank),
                 {.lane = local_lane(ring)});
  }
}

void add_reducescatter(Builder& builder, const RingChannel& ring) {
  reduce_scatter_stage(builder, ring, [&](int rank, int chunk, bool last) {
    const std::int64_t length = ring.length(chunk);
    if (last) return builder.output(rank, ring.first(), length);
    // In place the rank's own copy of the chunk is not needed again.
    return builder.contract().in_place ? builder.input(rank, ring.begin(chunk), length)
                                       : builder.tmp(rank, ring.begin(chunk), length);
  });
}

int position_of(const RingChannel& ring, int rank) {
  const std::vector<int>& order = ring.ring.order;
  return static_cast<int>(std::find(order.begin(), order.end(), rank) - order.begin());
}

void add_broadcast(Builder& builder, const RingChannel& ring, int root) {
  const int first = position_of(ring, root);
  const std::int64_t unit = ring.first();
  const std::int64_t length = ring.length(0);
  Slice held = builder.input(root, unit, length);
  for (int position = first; position + 1 < first + ring.ranks(); ++position) {
    const Slice to = builder.output(ring.rank_at(position + 1), unit, length);
    pass_on(builder, ring, position, unit, to, held);
    held = to;
  }
  keep_own(builder, root, unit, length, local_lane(ring));
}

/// The rank after the root begins; the root is last.
void add_reduce(Builder& builder, const RingChannel& ring, int root) {
  const int first = position_of(ring, root) + 1;
  const std::int64_t unit = ring.first();
  const std::int64_t length = ring.length(0);
  Slice held = builder.input(ring.rank_at(first), unit, length);
  for (int position = first; position + 1 < first + ring.ranks(); ++position) {
    const int next = ring.rank_at(position + 1);
    const Slice received = within_reach(builder, ring, position, unit, held);
    held = accumulator(builder, next, unit, length);
    builder.combine(held, {received, builder.input(next, unit, length)}, {.lane = ring.channel});
  }
}

}  // namespace

Ring Ring::reversed() const {
  // Hop i of the reverse leaves order[-i] for order[-i - 1]: hop n - 1 - i, taken backwards.
  Ring back = *this;
  std::reverse(back.order.begin() + 1, back.order.end());
  std::reverse(back.relays.begin(), back.relays.end());
  return back;
}

Slice accumulator(const Builder& builder, int rank, std::int64_t begin, std::int64_t length) {
  if (output_region(builder.contract(), rank).units > 0) return builder.output(rank, begin, length);
  if (builder.contract().in_place) return builder.input(rank, begin, length);
  return builder.tmp(rank, begin, length);
}

void keep_own(Builder& builder, int rank, std::int64_t begin, std::int64_t length, int lane) {
  builder.copy(builder.output(rank, begin, length), builder.input(rank, begin, length),
               {.lane = lane});
}

std::vector<RingChannel> ring_channels(const std::vector<Ring>& rings, bool both_ways,
                                       bool pulled) {
  std::vector<RingChannel> channels;
  for (const Ring& ring : rings) {
    channels.push_back({ring});
    if (both_ways) channels.push_back({ring.reversed()});
  }
  for (std::size_t i = 0; i < channels.size(); ++i) {
    channels[i].channel = static_cast<int>(i);
    channels[i].channels = static_cast<int>(channels.size());
    channels[i].pulled = pulled;
  }
  return channels;
}

std::int64_t ring_units(Collective collective, int ranks, std::size_t channels) {
  const bool rooted = info(collective).rooted;
  return static_cast<std::int64_t>(channels) * (rooted ? 1 : ranks);
}

void add_ring_channel(Builder& builder, const RingChannel& channel) {
  const Contract& contract = builder.contract();
  if (channel.ranks() == 1) {
    keep_own(builder, channel.rank_at(0), channel.first(), channel.length(0), local_lane(channel));
    return;
  }
  switch (contract.collective) {
    case Collective::allreduce:
      add_allreduce(builder, channel);
      break;
    case Collective::allgather:
      add_allgather(builder, channel);
      break;
    case Collective::reducescatter:
      add_reducescatter(builder, channel);
      break;
    case Collective::broadcast:
      add_broadcast(builder, channel, contract.root);
      break;
    case Collective::reduce:
      add_reduce(builder, channel, contract.root);
      break;
    default:
      CHECK(false);
  }
}

}  // namespace espalier
