// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "topologies/topology.h"

namespace espalier {

/// A link by its kind, whose efficiency under a profile applies, and its theoretical GB/s.
struct LinkRate {
  std::string kind;
  double gbps = 0;
  Duplex duplex = Duplex::full;
};

/// Adds a node, or a link or bundle of links of a kind that is known without a file. Private to the
/// room.
NodeId add_node(Topology& machine, std::string name, NodeKind kind, int host, int numa);
void add_link(Topology& machine, NodeId a, NodeId b, const LinkRate& rate, double latency_us,
              int count = 1);

/// GB/s that profile `kernel`, as it is without a machine's changes, makes of one link.
double kernel_gbps(const LinkRate& rate);

/// Takes the model from `other` if `gpu` has none, and each figure that it has not.
void fill_gpu(Node& gpu, const Node& other);

}  // namespace espalier
