// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "planner/graph/exact.h"
#include "topologies/placement.h"

namespace espalier {

/// What trees may use of a machine: a directed graph with integer capacities on which every walk
/// from rank to rank through other vertices is a route that the machine allows. Private to this
/// room.
///
/// Vertices 0..ranks-1 are the GPUs that every tree reaches, the ranks and after them relays that
/// take part as if they were ranks; the next `relays` are relays that forward only. All these store
/// and forward; the rest are nodes that only pass traffic on. A PCIe switch whose GPUs may not copy
/// to each other (Topology::peer_access) is two vertices, one on the way up to a CPU and one on the
/// way down; a NIC is one for each direction. Machines with half-duplex links are approximated from
/// below: plans are right, perhaps not the best.
struct CapacityGraph {
  struct Arc {
    int from = 0;
    int to = 0;
    std::int64_t capacity = 0;  ///< in `unit_bytes_per_s`
    /// The link whose direction this is; -1 for the arcs that only lead to or from such an arc.
    LinkId link = -1;
  };

  int ranks = 0;
  int relays = 0;
  std::vector<NodeId> node;       ///< by vertex; -1 for one that only joins arcs
  std::vector<Arc> arcs;          ///< at most one from a vertex to another
  Rational unit_bytes_per_s = 1;  ///< makes no capacity too large

  int vertices() const { return static_cast<int>(node.size()); }
};

/// Which way half-duplex links and shared media are used. `evenly`: both directions get half, and
/// the links of a medium equal parts. `outward`: a half-duplex link is used only in the direction
/// away from a root, if one of its ends is nearer to it: what a broadcast needs.
enum class MediaUse : std::uint8_t { evenly, outward };

/// What a relay is to the trees: nothing, a switch that can't copy (but stores, so that any route
/// may end there and another begin), or one more GPU to be reached, which can copy and combine.
enum class RelayRole : std::uint8_t { unused, forwards, member };

/// Below a PCIe switch that serves several sockets, GPUs of one socket may
/// copy to each other and those of different sockets may not, which walks in a
/// graph cannot distinguish. Plans assume that none may, bounds that all may.
enum class MixedSwitches : std::uint8_t { stage, forward };

/// `roles`: of the placement's relays, or of none. Under the router's profile and link scope.
CapacityGraph capacity_graph(const Router& router, const Placement& placement, MediaUse media,
                             int root = 0, const std::vector<RelayRole>& roles = {},
                             MixedSwitches mixed = MixedSwitches::stage);

/// Whether the machine has a link in use that both directions share, so that MediaUse matters.
bool has_half_duplex_links(const Router& router);

}  // namespace espalier
