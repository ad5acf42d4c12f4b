// SPDX-License-Identifier: Apache-2.0
// Rings over the ranks in the order given. Allreduce: Patarasuk and Yuan, "Bandwidth optimal
// all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009; Baidu ring allreduce,
// 2017. Broadcast: around the ring as in NCCL; with two directions, half of the message each way,
// as Blink (SysML 2018, section 1) describes it.
#include <utility>

#include "algorithms/schedules.h"
#include "core/check.h"

namespace espalier {

namespace {

/// One direction around the ring. Positions count along the direction from rank 0 (allreduce and
/// the like) or from the root; a message of n chunks is cut further so that each direction has its
/// share.
struct Ring {
  int ranks;
  int directions;
  int direction;  ///< 0: towards rank + 1; 1: towards rank - 1. Also the lane.
  int first = 0;  ///< rank at position 0

  int rank_at(int position) const {
    const int steps = direction == 0 ? position : -position;
    return wrap(first + wrap(steps, ranks), ranks);
  }
  /// This direction's unit of chunk `chunk`.
  std::int64_t unit(int chunk) const { return std::int64_t{chunk} * directions + direction; }
};

/// n - 1 steps; in each, every rank adds its own part of a chunk to what its predecessor has of it.
/// Chunk r ends at rank r: it starts one position further and travels all the way round.
/// `partial(rank, chunk, last)` is where a rank puts what it has combined so far.
template <typename Partial>
void reduce_scatter_stage(Builder& builder, const Ring& ring, Partial partial) {
  const int n = ring.ranks;
  for (int step = 1; step < n; ++step) {
    for (int position = 0; position < n; ++position) {
      const int rank = ring.rank_at(position);
      const int previous = ring.rank_at(wrap(position - 1, n));
      const int chunk = ring.rank_at(wrap(position - 1 - step, n));
      const Slice own = builder.input(rank, ring.unit(chunk), 1);
      const Slice received = step == 1 ? builder.input(previous, ring.unit(chunk), 1)
                                       : partial(previous, chunk, false);
      builder.combine(partial(rank, chunk, step == n - 1), {received, own},
                      {.lane = ring.direction});
    }
  }
}

/// n - 1 steps; in each, every rank passes on the chunk it got last, its own (`own(rank)`) first.
template <typename Own>
void allgather_stage(Builder& builder, const Ring& ring, Own own) {
  const int n = ring.ranks;
  for (int step = 1; step < n; ++step) {
    for (int position = 0; position < n; ++position) {
      const int rank = ring.rank_at(position);
      const int next = ring.rank_at(wrap(position + 1, n));
      const int chunk = ring.rank_at(wrap(position + 1 - step, n));
      const Slice held = step == 1 ? own(rank) : builder.output(rank, ring.unit(chunk), 1);
      builder.copy(builder.output(next, ring.unit(chunk), 1), held, {.lane = ring.direction});
    }
  }
}

void build_allreduce(Builder& builder, const Ring& ring) {
  reduce_scatter_stage(builder, ring, [&](int rank, int chunk, bool) {
    return builder.output(rank, ring.unit(chunk), 1);
  });
  allgather_stage(builder, ring,
                  [&](int rank) { return builder.output(rank, ring.unit(rank), 1); });
}

void build_allgather(Builder& builder, const Ring& ring) {
  allgather_stage(builder, ring, [&](int rank) { return builder.input(rank, ring.direction, 1); });
  for (int rank = 0; rank < ring.ranks; ++rank) {
    builder.copy(builder.output(rank, ring.unit(rank), 1), builder.input(rank, ring.direction, 1),
                 {.lane = ring.directions + ring.direction});
  }
}

void build_reducescatter(Builder& builder, const Ring& ring) {
  reduce_scatter_stage(builder, ring, [&](int rank, int chunk, bool last) {
    if (last) return builder.output(rank, ring.direction, 1);
    // In place the rank's own copy of the chunk is not needed again.
    return builder.contract().in_place ? builder.input(rank, ring.unit(chunk), 1)
                                       : builder.tmp(rank, ring.unit(chunk), 1);
  });
}

void build_broadcast(Builder& builder, const Ring& ring) {
  std::vector<int> order;
  for (int position = 0; position < ring.ranks; ++position) order.push_back(ring.rank_at(position));
  relay(builder, order, builder.input(ring.first, ring.direction, 1), ring.direction,
        ring.direction);
  keep_own(builder, ring.first, ring.direction, 1, ring.directions + ring.direction);
}

/// A ring of one rank moves nothing; input becomes output.
void build_single(Builder& builder) { keep_own(builder, 0, 0, builder.contract().units, 0); }

Program build_ring(const BuildRequest& request) {
  const int n = request.ranks;
  const auto directions = static_cast<int>(request.parameter("directions"));
  const bool broadcast = request.collective == Collective::broadcast;
  Builder builder("ring", request.contract(std::int64_t{broadcast ? 1 : n} * directions));
  if (n == 1) {
    build_single(builder);
    return builder.finish();
  }
  for (int direction = 0; direction < directions; ++direction) {
    const Ring ring{n, directions, direction, broadcast ? request.root : 0};
    switch (request.collective) {
      case Collective::allreduce:
        build_allreduce(builder, ring);
        break;
      case Collective::allgather:
        build_allgather(builder, ring);
        break;
      case Collective::reducescatter:
        build_reducescatter(builder, ring);
        break;
      case Collective::broadcast:
        build_broadcast(builder, ring);
        break;
      default:
        CHECK(false);
    }
  }
  return builder.finish();
}

}  // namespace

const Algorithm& ring_algorithm() {
  static const Algorithm algorithm = {
      .name = "ring",
      .summary = "every rank passes chunks to the next, ranks in the order given",
      .constraints = "any rank count",
      .paper = "Patarasuk and Yuan, JPDC 2009; Baidu ring allreduce, 2017",
      .collectives = {Collective::allreduce, Collective::allgather, Collective::reducescatter,
                      Collective::broadcast},
      .parameters = {{"directions", "1: one way round; 2: half of the message each way", 1, 1, 2}},
      .pipelined = true,
      .max_ranks = kMaxQuadraticRanks,
      .build = build_ring};
  return algorithm;
}

}  // namespace espalier
