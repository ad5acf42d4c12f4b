// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "nccl/tuner.h"
#include "nccl/tuner_tables.h"

// What the tuners of NCCL and RCCL have in common. Private to the room.

namespace espalier {

/// How latencies are made of what one hop takes, which each library has tables of.
class NcclTunerBase {
 public:
  virtual ~NcclTunerBase() = default;

  /// Of the algorithms that the tuner weighs and their protocols, in their order.
  std::vector<NcclCell> cells() const {
    std::vector<NcclCell> all;
    for (const NcclAlgorithm algorithm : all_nccl_algorithms()) {
      const bool is_weighed =
          algorithm != NcclAlgorithm::p2p && algorithm != NcclAlgorithm::symmetric;
      if (!is_weighed) continue;
      for (const NcclProtocol protocol : all_nccl_protocols()) {
        all.push_back(cell(algorithm, protocol));
      }
    }
    return all;
  }

 protected:
  /// `inside`: what joins the GPUs of a node.
  NcclTunerBase(Collective collective, double bytes, const NcclMachine& machine,
                const NcclGraph& graph, NcclHardware inside)
      : collective_(collective), bytes_(bytes), machine_(machine), graph_(graph), inside_(inside) {}

  virtual NcclCell cell(NcclAlgorithm algorithm, NcclProtocol protocol) const = 0;
  // us.
  virtual double base_us(NcclAlgorithm algorithm, NcclProtocol protocol) const = 0;
  virtual double tree_hop_us(NcclHardware hardware, NcclProtocol protocol) const = 0;
  virtual double ring_hop_us(NcclHardware hardware, NcclProtocol protocol) const = 0;
  /// What hops inside nodes are multiplied by.
  virtual double inside_factor(NcclProtocol) const { return 1; }
  /// What a ring's hop inside a node takes at least, where it has others to another node.
  virtual double least_inside_us(NcclProtocol protocol) const {
    const double post_us = machine_.cpu == CpuMaker::amd ? 2 : 1;  // what the network's posts cost
    return post_us * (protocol == NcclProtocol::simple ? 3 : 1);
  }
  /// What a ring's hop to another node takes. With one GPU for each node nothing hides it: as long
  /// as a tree's.
  virtual double between_nodes_us(NcclProtocol protocol) const {
    return is_alone() ? tree_hop_us(NcclHardware::network, protocol)
                      : ring_hop_us(NcclHardware::network, protocol);
  }
  /// How many of a ring's hops are between nodes.
  virtual double hops_between_nodes() const { return rounds() * (nodes() - 1); }

  bool is_allreduce() const { return collective_ == Collective::allreduce; }
  bool is_rooted() const { return info(collective_).rooted; }
  int n() const { return machine_.ranks; }
  int nodes() const { return machine_.nodes; }
  double per_node() const { return static_cast<double>(n()) / nodes(); }
  /// Whether the GPU that a node sends from is the one that it receives with.
  bool is_alone() const { return nodes() > 1 && machine_.ranks_per_node < 2; }
  double levels() const { return std::floor(std::log2(nodes())); }
  /// How often a message goes round a ring.
  int rounds() const { return is_allreduce() ? 2 : 1; }

  double tree_latency_us(NcclProtocol protocol) const {
    const double inside_us = inside_factor(protocol) * tree_hop_us(inside_, protocol);
    const double network_us = tree_hop_us(NcclHardware::network, protocol);
    return base_us(NcclAlgorithm::tree, protocol) +
           2 * ((per_node() - 1) * inside_us + levels() * network_us);
  }

  double ring_latency_us(NcclProtocol protocol) const {
    const double base = base_us(NcclAlgorithm::ring, protocol);
    if (is_rooted()) {
      const NcclHardware slowest = nodes() > 1 ? NcclHardware::network : inside_;
      if (graph_.same_order) return base + ring_hop_us(slowest, protocol);
      return base + n() * (protocol == NcclProtocol::simple ? tree_hop_us(slowest, protocol)
                                                            : ring_hop_us(slowest, protocol));
    }
    const double between = nodes() == 1 ? 0 : hops_between_nodes();
    double inside_us = ring_hop_us(inside_, protocol);
    if (nodes() > 1) inside_us = std::max(inside_us, least_inside_us(protocol));
    inside_us *= inside_factor(protocol);
    return base + (rounds() * (n() - 1) - between) * inside_us +
           between * between_nodes_us(protocol);
  }

  /// Of the whole buffer, in as many times as every byte crosses a link of a ring.
  double ring_share() const {
    if (is_rooted()) return 1;
    return static_cast<double>(n()) / (rounds() * std::max(1, n() - 1));
  }

  Collective collective_;
  double bytes_;
  const NcclMachine& machine_;
  const NcclGraph& graph_;
  NcclHardware inside_;
};

}  // namespace espalier
