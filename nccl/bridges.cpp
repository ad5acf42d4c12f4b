// SPDX-License-Identifier: Apache-2.0
#include "nccl/bridges.h"

#include <algorithm>
#include <unordered_map>

namespace espalier {
namespace {

bool joins_gpus(const Topology& topology, const Link& link) {
  return link.link_class == LinkClass::gpu_fabric && topology.node(link.a).kind == NodeKind::gpu &&
         topology.node(link.b).kind == NodeKind::gpu;
}

}  // namespace

NcclBridges::NcclBridges(const NcclMachine& machine, const Router& router,
                         const Placement& placement, NcclVersion version)
    : router_(router), placement_(placement), neighbors_(placement.ranks.size()) {
  if (version < kFirstNcclWithNvb || machine.is_amd) return;
  std::unordered_map<NodeId, int> rank_of_gpu;
  for (int rank = 0; rank < machine.ranks; ++rank) {
    rank_of_gpu[placement.ranks[static_cast<std::size_t>(rank)]] = rank;
  }
  const Topology& topology = router.topology();
  const auto add = [&](NodeId here, NodeId there, double gbps) {
    const auto from = rank_of_gpu.find(here);
    const auto to = rank_of_gpu.find(there);
    // GPUs that are no ranks are not in NCCL's topology.
    if (from == rank_of_gpu.end() || to == rank_of_gpu.end()) return;
    Neighbors& among = neighbors_[static_cast<std::size_t>(from->second)];
    const auto known = std::ranges::find(among, to->second, &Neighbor::rank);
    if (known == among.end()) {
      among.push_back({to->second, gbps});
    } else {
      known->gbps += gbps;
    }
  };
  for (const Link& link : topology.links) {
    if (!joins_gpus(topology, link)) continue;
    add(link.a, link.b, link.gbps * link.count);
    add(link.b, link.a, link.gbps * link.count);
  }
  for (Neighbors& among : neighbors_) {
    std::ranges::stable_sort(among, std::ranges::greater(), &Neighbor::gbps);
  }
}

NcclBridges::Neighbors::const_iterator NcclBridges::find(const Neighbors& among, int rank) {
  return std::ranges::find(among, rank, &Neighbor::rank);
}

bool NcclBridges::any() const {
  for (int from = 0; from < static_cast<int>(neighbors_.size()); ++from) {
    for (const Neighbor& one : neighbors_[static_cast<std::size_t>(from)]) {
      for (const Neighbor& to : neighbors_[static_cast<std::size_t>(one.rank)]) {
        if (between(from, to.rank) != from) return true;
      }
    }
  }
  return false;
}

int NcclBridges::between(int from, int to) const {
  const Neighbors& of_sender = neighbors_[static_cast<std::size_t>(from)];
  const Neighbors& of_receiver = neighbors_[static_cast<std::size_t>(to)];
  if (from == to || find(of_sender, to) != of_sender.end()) return from;
  int best = from;
  double best_gbps = 0;
  for (const Neighbor& one : of_sender) {
    const auto there = find(of_receiver, one.rank);
    if (there == of_receiver.end()) continue;
    const double gbps = std::min(one.gbps, there->gbps);
    if (gbps <= best_gbps) continue;
    best_gbps = gbps;
    best = one.rank;
  }
  if (best == from) return from;
  const Route* const route = router_.route(placement_.ranks[static_cast<std::size_t>(from)],
                                           placement_.ranks[static_cast<std::size_t>(to)]);
  const bool is_joined = route != nullptr && route->kind == RouteKind::gpu_fabric;
  return is_joined ? from : best;
}

}  // namespace espalier
