// SPDX-License-Identifier: Apache-2.0
// Every byte goes directly from the rank that has it to the rank that needs it. Broadcast is the
// serial loop of "Optimized broadcast for deep learning" (OSU 2017), section III-A, equation 1. The
// exchanges begin with the next rank, so that not everybody meets rank 0 first (Thakur,
// Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA
// 2005).
#include "algorithms/schedules.h"
#include "core/check.h"
#include "ir/unfold.h"

namespace espalier {

namespace {

constexpr int kLocalLane = 0;
constexpr int kFirstLane = 1;

void build_broadcast(Builder& builder, int root) {
  push_to_others(builder.ranks(), root, 1, kFirstLane, [&](int peer, int lane) {
    builder.copy(builder.output(peer, 0, 1), builder.input(root, 0, 1), {.lane = lane});
  });
  keep_own(builder, root, 0, 1, kLocalLane);
}

void build_allgather(Builder& builder, int at_once) {
  for (int rank = 0; rank < builder.ranks(); ++rank) {
    if (!builder.builds(rank)) continue;
    const Slice own = builder.input(rank, 0, 1);
    push_to_others(builder.ranks(), rank, at_once, kFirstLane, [&](int peer, int lane) {
      builder.copy(builder.output(peer, rank, 1), own, {.lane = lane});
    });
    builder.copy(builder.output(rank, rank, 1), own, {.lane = kLocalLane});
  }
}

void build_gather(Builder& builder, int root) {
  for (int rank = 0; rank < builder.ranks(); ++rank) {
    builder.copy(builder.output(root, rank, 1), builder.input(rank, 0, 1),
                 {.lane = rank == root ? kLocalLane : kFirstLane});
  }
}

void build_scatter(Builder& builder, int root, int at_once) {
  push_to_others(builder.ranks(), root, at_once, kFirstLane, [&](int peer, int lane) {
    builder.copy(builder.output(peer, 0, 1), builder.input(root, peer, 1), {.lane = lane});
  });
  builder.copy(builder.output(root, 0, 1), builder.input(root, root, 1), {.lane = kLocalLane});
}

void build_alltoall(Builder& builder, int at_once) {
  std::vector<Slice> inputs;
  for (int rank = 0; rank < builder.ranks(); ++rank)
    inputs.push_back(saved_input(builder, rank, kLocalLane));
  for (int rank = 0; rank < builder.ranks(); ++rank) {
    if (!builder.builds(rank)) continue;
    Slice block = inputs[static_cast<std::size_t>(rank)];
    block.length = 1;
    const std::int64_t begin = block.begin;
    push_to_others(builder.ranks(), rank, at_once, kFirstLane, [&](int peer, int lane) {
      block.begin = begin + peer;
      builder.copy(builder.output(peer, rank, 1), block, {.lane = lane});
    });
    keep_own(builder, rank, rank, 1, kLocalLane);
  }
}

void build_sendrecv(Builder& builder) {
  std::vector<Slice> inputs;
  for (int rank = 0; rank < builder.ranks(); ++rank)
    inputs.push_back(saved_input(builder, rank, kLocalLane));
  for (int rank = 0; rank < builder.ranks(); ++rank) {
    builder.copy(builder.output(wrap(rank + 1, builder.ranks()), 0, 1),
                 inputs[static_cast<std::size_t>(rank)], {.lane = kFirstLane});
  }
}

Contract contract_of(const BuildRequest& request) {
  return request.contract(info(request.collective).blocked ? request.ranks : 1);
}

/// Every rank begins with the next one. Several ops at once that share links in changing company
/// make roundings grow: two orders of the same ops then differ by percents, and so would a group
/// from all. Where all of them begin at once nobody joins later, unless they are cut: a piece
/// begins when the one before it has ended.
std::vector<Fold> fold_direct(const BuildRequest& request) {
  const std::int64_t at_once = request.parameter("at_once");
  const bool are_several = at_once > 1 && at_once < request.ranks - 1;
  if (info(request.collective).rooted || are_several) return {};
  return all_turned_by_blocks(contract_of(request), request.ranks);
}

bool folds_direct_when_cut(const AlgorithmChoice& choice) {
  const auto at_once = choice.parameters.find("at_once");
  return at_once != choice.parameters.end() && at_once->second == 1;
}

Program build_direct(const BuildRequest& request) {
  const int n = request.ranks;
  const auto at_once = static_cast<int>(request.parameter("at_once"));
  Builder builder("direct", contract_of(request), request.fold);
  switch (request.collective) {
    case Collective::broadcast:
      build_broadcast(builder, request.root);
      break;
    case Collective::reduce:
      reduce_all(builder, builder.output(request.root, 0, 1), request.root, 0, at_once, kLocalLane);
      break;
    case Collective::reducescatter:
      for (int rank = 0; rank < n; ++rank) {
        if (!builder.builds(rank)) continue;
        reduce_all(builder, builder.output(rank, 0, 1), rank, rank, at_once, kLocalLane);
      }
      break;
    case Collective::allgather:
      build_allgather(builder, at_once);
      break;
    case Collective::gather:
      build_gather(builder, request.root);
      break;
    case Collective::scatter:
      build_scatter(builder, request.root, at_once);
      break;
    case Collective::alltoall:
      build_alltoall(builder, at_once);
      break;
    case Collective::sendrecv:
      build_sendrecv(builder);
      break;
    default:
      CHECK(false);
  }
  return builder.finish();
}

}  // namespace

const Algorithm& direct_algorithm() {
  static const Algorithm algorithm = {
      .name = "direct",
      .summary =
          "each block goes directly from its source to its destination; broadcast sends to one "
          "rank at a time",
      .constraints = "any number of ranks",
      .paper = "Optimized broadcast for deep learning, OSU 2017, eq. 1; Thakur et al., IJHPCA 2005",
      .collectives = {Collective::broadcast, Collective::reduce, Collective::allgather,
                      Collective::reducescatter, Collective::gather, Collective::scatter,
                      Collective::alltoall, Collective::sendrecv},
      .parameters = {at_once_parameter()},
      .of_ranks_alone = true,
      .max_ranks = kMaxQuadraticRanks,
      .folds = fold_direct,
      .folds_when_cut = folds_direct_when_cut,
      .build = build_direct};
  return algorithm;
}

}  // namespace espalier
