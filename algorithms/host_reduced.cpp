// SPDX-License-Identifier: Apache-2.0
// What MPI libraries do with buffers on GPUs when their reductions run on CPUs: Open MPI in
// "Interconnect-aware multi-path GPU communication with UCX", section "Open MPI + UCX". Every rank
// copies its message to its host memory, where those of its ranks are added up, host memories
// allreduce in a ring, and every rank gets the result. One step after the other: nothing is cut
// unless a chunk size is asked for.
#include <algorithm>

#include "algorithms/schedules.h"

namespace espalier {

namespace {

/// Lanes of a host memory. Copies to its ranks follow, one lane each.
constexpr int kReduceLane = 0;
constexpr int kRingLane = 1;
constexpr int kFirstPushLane = 2;

Program build_host_reduced(const BuildRequest& request) {
  if (request.ranks == 1) {
    Builder builder("host_reduced", request.contract(1));
    keep_own(builder, 0, 0, 1, 0);
    return builder.finish();
  }
  std::vector<std::vector<int>> ranks_of_host(static_cast<std::size_t>(request.hosts));
  for (int rank = 0; rank < request.ranks; ++rank) {
    ranks_of_host[static_cast<std::size_t>(host_of(request, rank))].push_back(rank);
  }
  const auto used = static_cast<std::int64_t>(
      std::ranges::count_if(ranks_of_host, [](const auto& ranks) { return !ranks.empty(); }));
  Builder builder("host_reduced", request.contract(used));
  std::vector<Slice> sums;
  for (const std::vector<int>& ranks : ranks_of_host) {
    const PlaceId host = builder.add_host();
    std::vector<Slice> copies;
    for (const int rank : ranks) {
      copies.push_back(builder.tmp(host, used * static_cast<std::int64_t>(copies.size()), used));
      builder.copy(copies.back(), builder.input(rank, 0, used));
    }
    if (copies.empty()) continue;
    if (copies.size() > 1) builder.combine(copies[0], copies, {.lane = kReduceLane});
    sums.push_back(copies[0]);
  }
  ring_allreduce(builder, sums, kRingLane);
  for (const Slice& sum : sums) {
    int lane = kFirstPushLane;
    for (const int rank : ranks_of_host[static_cast<std::size_t>(sum.place - request.ranks)]) {
      builder.copy(builder.output(rank, 0, used), sum, {.lane = lane++});
    }
  }
  return builder.finish();
}

}  // namespace

const Algorithm& host_reduced_algorithm() {
  static const Algorithm algorithm = {
      .name = "host_reduced",
      .summary =
          "messages are copied to host memory, added up by CPUs, and the result is copied back",
      .constraints = "any number of ranks; needs host memory",
      .paper = "Interconnect-aware multi-path GPU communication with UCX (its Open MPI baseline)",
      .collectives = {Collective::allreduce},
      .uses_hosts = true,
      .max_ranks = kMaxQuadraticRanks,
      .unsupported = missing_host,
      .build = build_host_reduced};
  return algorithm;
}

}  // namespace espalier
