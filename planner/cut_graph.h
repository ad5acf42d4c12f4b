// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "topologies/route.h"

namespace espalier {

/// Capacities in 1e-9 GB/s = bytes/s, so that cuts are compared exactly.
using Capacity = std::int64_t;

/// The part of a machine a collective may use, as a directed graph for cuts: rank GPUs, switches,
/// CPUs, NICs (idle GPUs only when the machine's GPUs forward), and the links of the router's
/// scope. A medium that both directions or several links share counts once in every cut.
class CutGraph {
 public:
  CutGraph(const Router& router, const Placement& placement);
  ~CutGraph();

  int ranks() const { return static_cast<int>(rank_vertex_.size()); }
  /// Every vertex is a rank's GPU and no medium joins more than two: cuts are plain sums.
  bool direct() const { return direct_; }

  /// Least capacity, of all node sets that hold the ranks of `inside` and no other rank, of the
  /// links that leave the set. `halve_media`: a shared medium counts half (see bounds.cpp,
  /// partitions).
  Capacity out_of(const std::vector<bool>& inside, bool halve_media) const;
  /// Same for exactly these vertices, without searching for a better set: any set gives a valid
  /// cut.
  Capacity leaving(const std::vector<bool>& vertices, bool halve_media) const;

  /// `leaving` of every rank's GPU alone, all in one pass.
  std::vector<Capacity> leaving_each(bool halve_media) const;

  /// Vertices that belong together, for the obvious cuts of machines with many ranks: every host,
  /// every socket, and the first ranks in order (bisections of lines, rings and tori; at most 64 of
  /// these).
  struct NaturalSets {
    std::vector<std::vector<bool>> hosts, sockets, prefixes;
  };
  NaturalSets natural_sets() const;
  /// Which ranks a vertex set holds.
  std::vector<bool> ranks_of(const std::vector<bool>& vertices) const;
  /// Vertex set of these ranks alone.
  std::vector<bool> vertices_of(const std::vector<bool>& ranks) const;

  std::string rank_name(int rank) const;

 private:
  struct Arc {
    int from, to;
    Capacity capacity;
    int medium;  ///< index of the medium that carries it, or -1
  };
  struct FlowNetwork;
  FlowNetwork& network(bool halve_media) const;

  const Router& router_;
  const Placement& placement_;
  std::vector<NodeId> vertex_node_;
  std::vector<int> rank_vertex_;
  std::vector<Arc> arcs_;
  std::vector<Capacity> medium_capacity_;
  bool direct_ = true;
  mutable std::unique_ptr<FlowNetwork> networks_[2];
};

}  // namespace espalier
