// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "planner/graph/capacity_graph.h"
#include "planner/graph/exact.h"

// Private to the room.

namespace espalier {

/// How an edge of a plan loads the links it crosses. `both_ways`: each direction once, as a tree
/// does that data goes up and then down. `one_way`: only the direction that it goes.
enum class EdgeUse : std::uint8_t { both_ways, one_way };

/// What trees and paths are packed into: the arcs of a capacity graph, and what has one capacity:
/// a link, a direction of it, or a medium. Both directions of a link are arcs.
struct PackingProblem {
  struct Arc {
    int to = 0;         ///< vertex
    int resource = -1;  ///< -1: free
  };
  /// `both_ways`: a full-duplex link with `capacity` for each direction, or a half-duplex one or a
  /// medium, which every use loads twice. `one_way`: a direction of a full-duplex link, a
  /// half-duplex link, or a medium.
  struct Resource {
    std::int64_t capacity = 0;  ///< in the problem's unit
    int load = 1;
    LinkId link = 0;      ///< the first of a medium's links
    bool forward = true;  ///< of a direction: from Link::a to Link::b
  };
  EdgeUse use = EdgeUse::both_ways;
  int ranks = 0;   ///< vertices 0..ranks-1
  int relays = 0;  ///< the next ones, which store and forward, too
  /// By vertex; -1: it only joins arcs. Where a medium is passed along, and not left, its station
  /// at a node stands for the node.
  std::vector<NodeId> node;
  std::vector<std::vector<Arc>> arcs_from;
  std::vector<Resource> resources;
  /// Bytes/s, see common_unit.h: for bounds and for plans.
  Rational upper_unit = 1, lower_unit = 1;

  int sites() const { return ranks + relays; }
};

/// With the placement's relays as relays, or each merged with the rank that `adopters` gives it:
/// what moves between the two is free then, which no schedule minds.
PackingProblem packing_problem(const Router& router, const Placement& placement, EdgeUse use,
                               const std::vector<int>& adopters = {},
                               MixedSwitches mixed = MixedSwitches::stage);

/// Whether arcs join all ranks.
bool is_connected(const PackingProblem& problem);
/// Throws Error{unsupported} naming two ranks that no arcs join, if there are.
void require_connected(const PackingProblem& problem, const Router& router,
                       const Placement& placement);

/// A transfer between two sites, ranks or relays: the vertices passed and the resources used, in
/// order.
struct PackedEdge {
  int from = 0, to = 0;
  std::vector<int> vertices;
  std::vector<int> resources;
};

/// The nodes that an edge passes, each a neighbour of the one before: Router::route knows the way.
std::vector<NodeId> nodes_passed(const PackingProblem& problem, const PackedEdge& edge);

}  // namespace espalier
