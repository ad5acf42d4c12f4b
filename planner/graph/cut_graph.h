// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "topologies/placement.h"

namespace espalier {

/// Capacities in 1e-9 GB/s = bytes/s, so that cuts are compared exactly.
using Capacity = std::int64_t;

/// The part of a machine a collective may use, as a directed graph for cuts: rank GPUs, relays,
/// switches, CPUs, NICs (other GPUs only when the machine's GPUs forward), and the links of the
/// router's scope. A medium that both directions or several links share counts once in every cut.
/// Private to the room.
class CutGraph {
 public:
  struct Arc {
    int from, to;  ///< vertices
    Capacity capacity;
    int medium;  ///< index of the medium that carries it, or -1
    Hop hop;     ///< the direction of a link that it is
  };

  CutGraph(const Router& router, const Placement& placement);
  ~CutGraph();

  int ranks() const { return ranks_; }
  int relays() const { return sites() - ranks_; }
  /// Ranks, then relays.
  int sites() const { return static_cast<int>(site_vertex_.size()); }
  /// Every vertex is a site's GPU and no medium joins more than two: cuts are plain sums.
  bool direct() const { return direct_; }
  /// Each followed by its opposite.
  const std::vector<Arc>& arcs() const { return arcs_; }
  int site_of(int vertex) const { return vertex_site_[static_cast<std::size_t>(vertex)]; }

  /// A set of vertices, and the capacity that leaves it.
  struct Cut {
    Capacity capacity = 0;
    std::vector<bool> inside;  ///< by vertex
  };
  /// Whether there is a medium, so that what leaves a set may need the capacity of what enters it.
  bool has_media() const { return !medium_capacity_.empty(); }
  /// A cut of minimum capacity that contains the first rank and not the second.
  Cut between(int inside, int outside) const;
  /// The same with capacity as in `around`: what leaves the set and what enters it.
  Cut around_between(int inside, int outside) const;
  /// Of the cuts that don't hold `outside`, one of least `weight` * capacity - `price` * ranks
  /// inside; that of no rank, with capacity 0, when none is below 0.
  Cut least_priced(int outside, Capacity price, std::int64_t weight) const;
  /// The cut of minimum capacity with exactly these ranks inside; relays may be on either side.
  Cut out_of(const std::vector<bool>& ranks) const;

  /// What leaves exactly these vertices. Any set gives a valid cut.
  Capacity leaving(const std::vector<bool>& vertices) const;
  /// What leaves and what enters them: twice a full-duplex link, once a medium.
  Capacity around(const std::vector<bool>& vertices) const;
  /// Those that `leaving` adds up: of a medium, the first.
  std::vector<Arc> arcs_leaving(const std::vector<bool>& vertices) const;
  /// `leaving` and `around` of every site's GPU alone, all in one pass.
  std::vector<Capacity> leaving_each() const;
  std::vector<Capacity> around_each() const;

  /// Vertices that belong together, for the obvious cuts of machines with many ranks: every host,
  /// every socket, and the first ranks in order (bisections of lines, rings and tori; at most 64 of
  /// these).
  struct NaturalSets {
    std::vector<std::vector<int>> hosts, sockets;
    std::vector<std::vector<bool>> prefixes;
  };
  NaturalSets natural_sets() const;
  /// What `leaving`, `around`, `ranks_in` and `sites_of` say of a set of vertices.
  struct Summary {
    Capacity leaving = 0;
    Capacity around = 0;
    std::int64_t ranks = 0;
    std::int64_t sites = 0;
  };
  /// Of each of the sets, all in one pass.
  std::vector<Summary> summaries(const std::vector<std::vector<int>>& sets) const;
  /// By vertex: whether it is in the set.
  std::vector<bool> set_of(const std::vector<int>& vertices) const;
  /// Which sites a vertex set holds.
  std::vector<bool> sites_of(const std::vector<bool>& vertices) const;
  /// The vertices of these sites alone.
  std::vector<bool> vertices_of(const std::vector<bool>& sites) const;
  /// How many ranks a vertex set holds.
  std::int64_t ranks_in(const std::vector<bool>& vertices) const;

  std::string site_name(int site) const;

 private:
  struct FlowNetwork;
  FlowNetwork& network() const;
  Cut least_between(int inside, int outside, int full) const;
  /// The vertices on the side of the source, after a flow.
  std::vector<bool> source_side(const FlowNetwork& network) const;
  /// Capacity of every arc that is counted once; `full` times that of a link of its own.
  template <typename Count>
  void count_leaving(const std::vector<bool>& vertices, Count count) const;
  std::vector<Capacity> each(int full) const;

  const Router& router_;
  std::vector<NodeId> vertex_node_;
  int ranks_ = 0;
  std::vector<int> site_vertex_;
  std::vector<int> vertex_site_;
  std::vector<Arc> arcs_;
  std::vector<std::vector<int>> arcs_of_;  ///< by vertex: which begin there
  std::vector<Capacity> medium_capacity_;
  bool direct_ = true;
  mutable std::unique_ptr<FlowNetwork> network_;
};

}  // namespace espalier
