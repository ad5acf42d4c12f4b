// SPDX-License-Identifier: Apache-2.0
// The rings that NCCL lays over this machine and these ranks (NVIDIA/nccl src/graph/search.cc and
// rings.cc; planner/ring_search.h says how they are found), all collectives going round them. A
// ring used both ways is two of NCCL's channels. Every channel has the same share of the message,
// as NCCL gives all channels of a graph the same bandwidth, and each takes one link's worth of
// every bundle it crosses.
//
// A relayed hop is NCCL's path class NVB: the sender writes into a buffer on the GPU between, the
// receiver reads it from there.
//
// Per-link bandwidths come from the profile. `kernel` has NCCL's own constants (src/graph/topo.h)
// as efficiencies, so nothing is taken off here. Protocols are the profile's, which also splits a
// ring among blocks as NCCL doubles channels; the choice between ring and tree is not modelled.
#include <algorithm>

#include "algorithms/algorithm.h"
#include "ir/rings.h"
#include "planner/ring_search.h"

namespace espalier {

namespace {

RingSet rings_for(const BuildRequest& request) {
  if (request.ranks == 1) return {RingKind::direct, {{{0}, {-1}}}, false, ""};
  return find_rings(*request.router, *request.placement, {request.parameter("relays") == 1});
}

Contract contract_of(const BuildRequest& request, const RingSet& set) {
  const std::size_t channels = set.rings.size() * (set.both_ways ? 2 : 1);
  return request.contract(ring_units(request.collective, request.ranks, channels));
}

std::vector<Fold> fold_rings(const BuildRequest& request) {
  if (info(request.collective).rooted) return {};
  const RingSet set = rings_for(request);
  return folds_of_rings(contract_of(request, set), set.rings);
}

Program build_nccl_rings(const BuildRequest& request) {
  const RingSet set = rings_for(request);
  const std::vector<RingChannel> channels = ring_channels(set.rings, set.both_ways, true);
  Builder builder("nccl_rings", contract_of(request, set), request.fold);
  for (const RingChannel& channel : channels) add_ring_channel(builder, channel);
  return builder.finish();
}

std::optional<std::string> no_ring(const BuildRequest& request) {
  const RingSet set = rings_for(request);
  if (set.why_not.empty()) return std::nullopt;
  return "no ring through all ranks: " + set.why_not;
}

}  // namespace

const Algorithm& nccl_rings_algorithm() {
  static const Algorithm algorithm = {
      .name = "nccl_rings",
      .summary =
          "the rings that NCCL finds on this machine: over NVLink, relayed by a GPU, or over PCIe",
      .constraints = "any number of ranks; needs a machine",
      .paper = "NVIDIA NCCL, src/graph/search.cc",
      .collectives = {Collective::allreduce, Collective::broadcast, Collective::reduce,
                      Collective::allgather, Collective::reducescatter},
      .parameters = {{"relays",
                      "1: GPUs may relay a ring's traffic (NCCL 2.8 and later); 0: they may not", 1,
                      0, 1}},
      .pipelined = true,
      .needs_machine = true,
      .max_ranks = kMaxQuadraticRanks,
      .unsupported = no_ring,
      .folds = fold_rings,
      .folds_anywhere = true,
      .build = build_nccl_rings};
  return algorithm;
}

}  // namespace espalier
