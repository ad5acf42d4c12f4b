// SPDX-License-Identifier: Apache-2.0
// Rings over the ranks in the order given. Allreduce: Patarasuk and Yuan, "Bandwidth optimal
// all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009; Baidu ring allreduce,
// 2017. Broadcast: around the ring as in NCCL; with two directions, half of the message each way,
// as Blink (SysML 2018, section 1) describes it.
#include <numeric>

#include "algorithms/algorithm.h"
#include "ir/rings.h"
#include "ir/unfold.h"

namespace espalier {

namespace {

Contract contract_of(const BuildRequest& request) {
  const auto channels = static_cast<std::size_t>(request.parameter("directions"));
  return request.contract(ring_units(request.collective, request.ranks, channels));
}

/// One group does on its blocks what all others do on theirs.
std::vector<Fold> fold_ring(const BuildRequest& request) {
  if (info(request.collective).rooted) return {};
  return all_turned_by_blocks(contract_of(request), request.ranks);
}

Program build_ring(const BuildRequest& request) {
  const auto n = static_cast<std::size_t>(request.ranks);
  Ring ring{std::vector<int>(n), std::vector<int>(n, -1)};
  std::iota(ring.order.begin(), ring.order.end(), 0);
  const std::vector<RingChannel> channels =
      ring_channels({ring}, request.parameter("directions") == 2);
  Builder builder("ring", contract_of(request), request.fold);
  for (const RingChannel& channel : channels) add_ring_channel(builder, channel);
  return builder.finish();
}

}  // namespace

const Algorithm& ring_algorithm() {
  static const Algorithm algorithm = {
      .name = "ring",
      .summary = "every rank passes chunks to the next one, with ranks in the given order",
      .constraints = "any number of ranks",
      .paper = "Patarasuk and Yuan, JPDC 2009; Baidu ring allreduce, 2017",
      .collectives = {Collective::allreduce, Collective::allgather, Collective::reducescatter,
                      Collective::broadcast},
      .parameters = {{"directions",
                      "1: one direction; 2: half of the message in each direction",
                      1,
                      1,
                      2,
                      {2}}},
      .pipelined = true,
      .of_ranks_alone = true,
      .max_ranks = kMaxQuadraticRanks,
      .folds = fold_ring,
      .folds_anywhere = true,
      .build = build_ring};
  return algorithm;
}

}  // namespace espalier
