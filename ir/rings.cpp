// SPDX-License-Identifier: Apache-2.0
#include "ir/rings.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "core/check.h"
#include "ir/unfold.h"

namespace espalier {

namespace {

/// Lanes of a place: for every channel one for its transfers, one for what it keeps and one to hand
/// data to a relay.
int local_lane(const RingChannel& ring) { return ring.channels + ring.channel; }
int to_relay_lane(const RingChannel& ring) { return 2 * ring.channels + ring.channel; }

/// A channel whose relays' scratch is divided up: positions whose hops share a relay have an area
/// of their own there each, of the whole message; that of all accumulators comes first.
struct LaidRing : RingChannel {
  explicit LaidRing(const RingChannel& channel) : RingChannel(channel) {
    std::unordered_map<int, std::int64_t> areas;
    for (const int relay : ring.relays) area_of_hop.push_back(++areas[relay]);
  }
  int relay_after(int position) const {
    return ring.relays[static_cast<std::size_t>(wrapped(position))];
  }
  std::int64_t area_after(int position) const {
    return area_of_hop[static_cast<std::size_t>(wrapped(position))];
  }
  bool leaves_node_after(int position) const {
    if (nodes.empty()) return false;
    return nodes[static_cast<std::size_t>(rank_at(position))] !=
           nodes[static_cast<std::size_t>(rank_at(position + 1))];
  }

  std::vector<std::int64_t> area_of_hop;
};

/// Of a stretch of units, `most` at a time, in order; 0: all at once.
template <typename Visit>
void in_parts(std::int64_t first, std::int64_t length, std::int64_t most, const Visit& visit) {
  const std::int64_t step = most > 0 ? most : length;
  for (std::int64_t done = 0; done < length; done += step) {
    visit(first + done, std::min(step, length - done));
  }
}

/// The position's data where the next rank can read it: at the relay, if the hop has one. It gets
/// there in parts also where it goes on from there as a whole.
Slice within_reach(Builder& builder, const LaidRing& ring, int position, std::int64_t unit,
                   const Slice& data) {
  const int relay = ring.relay_after(position);
  if (relay < 0) return data;
  const std::int64_t begin = ring.area_after(position) * builder.contract().units + unit;
  in_parts(0, data.length, ring.most, [&](std::int64_t done, std::int64_t length) {
    builder.copy(builder.tmp(relay, begin + done, length),
                 {data.place, data.buffer, data.begin + done, length},
                 {.lane = to_relay_lane(ring)});
  });
  return builder.tmp(relay, begin, data.length);
}

/// Copies the position's data to the next rank.
void pass_on(Builder& builder, const LaidRing& ring, int position, std::int64_t unit,
             const Slice& to, const Slice& data) {
  if (ring.pulled) {
    builder.copy(to, within_reach(builder, ring, position, unit, data),
                 {.lane = ring.channel, .at = to.place});
  } else {
    CHECK(ring.relay_after(position) < 0);
    builder.copy(to, data, {.lane = ring.channel});
  }
}

/// Positions with a hop of which ops are built, by the rank there or by the one that is `ahead`,
/// the other end: all, unless the program is folded. What a relay passes on to the first group is
/// what that one's own relays were given before: hops that come in from another group are last.
std::vector<int> built_positions(const Builder& builder, const LaidRing& ring, int ahead) {
  std::vector<int> positions, coming_in;
  for (int position = 0; position < ring.ranks(); ++position) {
    const int sender = ring.rank_at(position + std::min(ahead, 0));
    const int receiver = ring.rank_at(position + std::max(ahead, 0));
    if (builder.builds(sender)) {
      positions.push_back(position);
    } else if (builder.builds(receiver)) {
      coming_in.push_back(position);
    }
  }
  positions.insert(positions.end(), coming_in.begin(), coming_in.end());
  return positions;
}

/// n - 1 steps; in each, every rank adds its own part of a chunk to what its predecessor has of it.
/// Chunk r ends at rank r: it starts one position further and travels all the way round.
/// `partial(rank, chunk, last)` is where a rank puts what it has combined so far.
template <typename Partial>
void reduce_scatter_stage(Builder& builder, const LaidRing& ring, Partial partial) {
  const int n = ring.ranks();
  const std::vector<int> positions = built_positions(builder, ring, -1);
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
void allgather_stage(Builder& builder, const LaidRing& ring, Own own) {
  const int n = ring.ranks();
  const std::vector<int> positions = built_positions(builder, ring, 1);
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

void add_allreduce(Builder& builder, const LaidRing& ring) {
  reduce_scatter_stage(builder, ring, [&](int rank, int chunk, bool) {
    return builder.output(rank, ring.begin(chunk), ring.length(chunk));
  });
  allgather_stage(builder, ring, [&](int rank) {
    return builder.output(rank, ring.begin(rank), ring.length(rank));
  });
}

void add_allgather(Builder& builder, const LaidRing& ring) {
  const auto own = [&](int rank) { return builder.input(rank, ring.first(), ring.length(rank)); };
  allgather_stage(builder, ring, own);
  for (int rank = 0; rank < ring.ranks(); ++rank) {
    builder.copy(builder.output(rank, ring.begin(rank), ring.length(rank)), own(rank),
                 {.lane = local_lane(ring)});
  }
}

void add_reducescatter(Builder& builder, const LaidRing& ring) {
  reduce_scatter_stage(builder, ring, [&](int rank, int chunk, bool last) {
    const std::int64_t length = ring.length(chunk);
    if (last) return builder.output(rank, ring.first(), length);
    // In place the rank's own copy of the chunk is not needed again.
    return builder.contract().in_place ? builder.input(rank, ring.begin(chunk), length)
                                       : builder.tmp(rank, ring.begin(chunk), length);
  });
}

int position_of(const LaidRing& ring, int rank) {
  const std::vector<int>& order = ring.ring.order;
  return static_cast<int>(std::find(order.begin(), order.end(), rank) - order.begin());
}

/// Of what a chain carries from the position to the next one, in order.
template <typename Visit>
void for_each_part(const LaidRing& ring, int position, const Visit& visit) {
  in_parts(ring.first(), ring.length(0), ring.leaves_node_after(position) ? 0 : ring.most, visit);
}

void add_broadcast(Builder& builder, const LaidRing& ring, int root) {
  const int first = position_of(ring, root);
  for (int position = first; position + 1 < first + ring.ranks(); ++position) {
    for_each_part(ring, position, [&](std::int64_t unit, std::int64_t length) {
      const Slice held = position == first ? builder.input(root, unit, length)
                                           : builder.output(ring.rank_at(position), unit, length);
      pass_on(builder, ring, position, unit,
              builder.output(ring.rank_at(position + 1), unit, length), held);
    });
  }
  keep_own(builder, root, ring.first(), ring.length(0), local_lane(ring));
}

/// The rank after the root begins; the root is last.
void add_reduce(Builder& builder, const LaidRing& ring, int root) {
  const int first = position_of(ring, root) + 1;
  for (int position = first; position + 1 < first + ring.ranks(); ++position) {
    const int rank = ring.rank_at(position);
    const int next = ring.rank_at(position + 1);
    for_each_part(ring, position, [&](std::int64_t unit, std::int64_t length) {
      const Slice held = position == first ? builder.input(rank, unit, length)
                                           : accumulator(builder, rank, unit, length);
      const Slice received = within_reach(builder, ring, position, unit, held);
      builder.combine(accumulator(builder, next, unit, length),
                      {received, builder.input(next, unit, length)}, {.lane = ring.channel});
    });
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

std::vector<Fold> folds_of_rings(const Contract& contract, const std::vector<Ring>& rings) {
  const int n = contract.ranks;
  const auto comes_alike = [&](const Ring& ring, int each) {
    const auto moved = [&](int rank) { return rank < 0 ? rank : (rank + each) % n; };
    for (int i = 0; i < n; ++i) {
      const auto here = static_cast<std::size_t>(i);
      const auto there = static_cast<std::size_t>(moved(i));
      if (ring.order[there] != moved(ring.order[here])) return false;
      if (ring.relays[there] != moved(ring.relays[here])) return false;
    }
    return true;
  };
  std::vector<Fold> all = all_turned_by_blocks(contract, contract.ranks);
  std::erase_if(all, [&](const Fold& fold) {
    return !std::ranges::all_of(rings,
                                [&](const Ring& ring) { return comes_alike(ring, fold.each); });
  });
  return all;
}

void add_ring_channel(Builder& builder, const RingChannel& of_ring) {
  const Contract& contract = builder.contract();
  const LaidRing channel(of_ring);
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
