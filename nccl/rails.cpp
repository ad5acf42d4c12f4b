// SPDX-License-Identifier: Apache-2.0
#include "nccl/rails.h"

#include <algorithm>

namespace espalier {
namespace {

/// Where the route enters the network, if that is a NIC.
NodeId nic_of(const Topology& topology, const Route* route, NodeId none) {
  if (route == nullptr) return none;
  for (const Hop& hop : route->hops) {
    const Link& link = topology.link(hop.link);
    if (link.link_class != LinkClass::network) continue;
    const NodeId end = hop.forward ? link.a : link.b;
    return topology.node(end).kind == NodeKind::nic ? end : none;
  }
  return none;
}

}  // namespace

NcclRails::NcclRails(const NcclMachine& machine, const Router& router, const Placement& placement,
                     bool pxn)
    : machine_(machine),
      router_(router),
      placement_(placement),
      pxn_(pxn),
      near_(near_nics(router.topology(), placement.ranks)) {
  const Topology& topology = router.topology();
  std::map<NodeId, int> device_of_gpu;
  std::map<int, int> gpus_of_host;
  for (const NodeId one : topology.gpus()) {
    device_of_gpu[one] = gpus_of_host[topology.node(one).host]++;
  }
  for (int rank = 0; rank < machine.ranks; ++rank) {
    const int node = machine.node_of(rank);
    const auto away = std::ranges::find_if(machine.node_of_rank, [&](int n) { return n != node; });
    const bool has_peer = away != machine.node_of_rank.end();
    const Route* const route =
        has_peer
            ? router.route(gpu(rank), gpu(static_cast<int>(away - machine.node_of_rank.begin())))
            : nullptr;
    nics_.push_back(nic_of(topology, route, kNone));
    device_.push_back(device_of_gpu.at(gpu(rank)));
    rank_of_device_.try_emplace({topology.node(gpu(rank)).host, device_.back()}, rank);
    rank_of_nic_.try_emplace({node, nics_.back()}, rank);
  }
}

bool NcclRails::is_near(int rank, int nic_of) const {
  return nic(nic_of) != kNone && near_[static_cast<std::size_t>(rank)].contains(nic(nic_of));
}

bool NcclRails::on_nvlink(int a, int b) const {
  const Route* const route = router_.route(gpu(a), gpu(b));
  return route != nullptr && route->kind == RouteKind::gpu_fabric &&
         !passes_gpu(router_.topology(), *route);
}

int NcclRails::sender(int from, int to) const {
  if (!pxn_ || machine_.node_of(from) == machine_.node_of(to)) return from;
  const int host = router_.topology().node(gpu(from)).host;
  const auto counterpart = rank_of_device_.find({host, device_[static_cast<std::size_t>(to)]});
  if (counterpart == rank_of_device_.end() || nic(counterpart->second) == kNone) return from;
  const int by = rank_of_nic_.at({machine_.node_of(from), nic(counterpart->second)});
  return by != from && is_near(by, by) && on_nvlink(from, by) ? by : from;
}

int NcclRails::sender_of_ring(int first, int last) const {
  if (!pxn_ || first == last || is_near(last, first)) return last;
  return is_near(first, first) && on_nvlink(last, first) ? first : last;
}

}  // namespace espalier
