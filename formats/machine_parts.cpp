// SPDX-License-Identifier: Apache-2.0
#include "formats/machine_parts.h"

#include "topologies/load.h"

namespace espalier {

NodeId add_node(Topology& machine, std::string name, NodeKind kind, int host, int numa) {
  Node node;
  node.name = std::move(name);
  node.kind = kind;
  node.host = host;
  node.numa = numa;
  machine.nodes.push_back(std::move(node));
  return static_cast<NodeId>(machine.nodes.size() - 1);
}

void add_link(Topology& machine, NodeId a, NodeId b, const LinkRate& rate, double latency_us,
              int count) {
  Link link;
  link.a = a;
  link.b = b;
  link.kind = rate.kind;
  link.link_class = built_in_profiles().link_kinds.at(rate.kind).link_class;
  link.count = count;
  link.gbps = rate.gbps;
  link.duplex = rate.duplex;
  link.latency_s = latency_us * 1e-6;
  machine.links.push_back(link);
}

double kernel_gbps(const LinkRate& rate) {
  return rate.gbps * built_in_profiles().profiles.at("kernel").links.at(rate.kind).efficiency;
}

void fill_gpu(Node& gpu, const Node& other) {
  if (gpu.model.empty()) gpu.model = other.model;
  if (gpu.memory_gbps == 0) gpu.memory_gbps = other.memory_gbps;
  if (gpu.reduce_gbps == 0) gpu.reduce_gbps = other.reduce_gbps;
  if (gpu.peer_limit == 0) gpu.peer_limit = other.peer_limit;
}

}  // namespace espalier
