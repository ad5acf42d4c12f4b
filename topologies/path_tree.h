// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "topologies/route.h"

namespace espalier {

/// The three networks of a machine. A link belongs to exactly one of them, by what it joins:
/// `gpu_fabric` GPUs and NVSwitches (by links of that class), `network` everything that ends at a
/// fabric node or is of class network, `host` the rest. So an NVLink from a GPU to a CPU is a host
/// link: it serves host memory and peer copies through CPUs, not the GPU fabric.
enum class Net : std::uint8_t { gpu_fabric, host, network };

Net net_of(const Topology& topology, const Link& link);

/// The links of a machine by node and network, in the order of their ids.
class LinkGraph {
 public:
  struct Edge {
    NodeId to;
    Hop hop;
  };

  /// `capacity_gbps` by link. Keeps a reference to `topology`.
  LinkGraph(const Topology& topology, std::vector<double> capacity_gbps);

  std::span<const Edge> edges(Net net, NodeId node) const;
  double capacity_gbps(LinkId link) const { return capacity_gbps_[static_cast<std::size_t>(link)]; }
  /// Whether a path over `net` may go through `node`.
  bool forwards(Net net, NodeId node) const;
  const Topology& topology() const { return topology_; }

 private:
  struct Adjacency {
    std::vector<std::size_t> begin;  ///< by node, one more than there are nodes
    std::vector<Edge> edges;
  };
  const Topology& topology_;
  std::vector<double> capacity_gbps_;
  std::array<Adjacency, 3> nets_;
};

/// The best paths from one node to all that can be reached over one network: fewest hops, then the
/// widest bottleneck, then the lowest link ids (from the source on).
class PathTree {
 public:
  /// The end of a path. The first one is the source itself.
  struct End {
    NodeId node;
    int hops;
    int parent;   ///< index of the end before; -1 at the source
    double gbps;  ///< bottleneck; infinite at the source
    Hop last;     ///< meaningless at the source
  };

  PathTree(const LinkGraph& graph, Net net, NodeId source);

  /// In order of hops.
  const std::vector<End>& ends() const { return ends_; }
  /// Nothing when `node` can't be reached.
  const End* find(NodeId node) const;
  /// The hops from the source to `end`, one of `ends()`.
  std::vector<Hop> path(const End& end) const;

 private:
  std::vector<End> ends_;
};

/// The path of a tree to a node that is two hops from its source, found without growing the tree;
/// nothing where the node is further away. \pre they are no neighbours
std::optional<std::vector<Hop>> path_over_one_node(const LinkGraph& graph, Net net, NodeId from,
                                                   NodeId to);

/// The way back: reversed order, opposite directions.
std::vector<Hop> reversed(const std::vector<Hop>& hops);

}  // namespace espalier
