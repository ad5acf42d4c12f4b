// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planner/capacity_graph.h"
#include "planner/exact.h"

// Spanning trees for allreduce on any machine. Private to the room.
//
// A byte of the message goes up a tree over the ranks, combined on the way, and its result down the
// same tree: every use of a link by an edge of the tree loads both of its directions once. A
// packing gives trees weights that add up to the rate without loading any link beyond its capacity.
// Edges may pass switches, which only pass on.
//
// No schedule is faster than the best packing, although up and down one tree looks like a
// restriction. Give every use of a link, in either direction, a price p >= 0. Messages between
// ranks cost at least the distance d of the two. A byte needs messages that connect the ranks at
// least twice over: of any partition into k parts at least 2(k-1) messages cross (see bounds.cpp),
// so the messages contain two disjoint spanning trees (Nash-Williams, Tutte 1961) and cost at least
// 2 MST(d). What all links can carry in a second costs at most 2 * sum of capacity * p. Hence
//   algbw <= sum of capacity * p / MST(d)  for any prices,
// and the least right side over all p is, by duality of linear programs, the best packing.
// (Wolfson and Segall, SIAM J. Computing 20(3), 1991: gossiping costs 2 MST.)
//
// With relays the trees are Steiner trees: each joins some of the relays as well. The cheapest one
// is the cheapest over all sets of relays, which are tried where they are few. The argument above
// does not hold then, since relays need not take part twice: bounds go other ways (see bounds.cpp).

namespace espalier {

/// What trees are packed into: the arcs of a capacity graph, those of one link (or of one medium)
/// with one capacity. Both directions of a link are arcs.
struct PackingProblem {
  struct Arc {
    int to = 0;         ///< vertex
    int resource = -1;  ///< -1: free
  };
  /// A link with `capacity` for each direction, or a medium that has it for all that crosses it and
  /// that every use loads twice, up and down.
  struct Resource {
    std::int64_t capacity = 0;  ///< in the problem's unit
    int load = 1;
    LinkId link = 0;  ///< the first of a medium's links
  };
  int ranks = 0;             ///< vertices 0..ranks-1
  int relays = 0;            ///< the next ones, which trees may join or not
  std::vector<NodeId> node;  ///< by vertex; -1: it only joins arcs
  std::vector<std::vector<Arc>> arcs_from;
  std::vector<Resource> resources;
  /// Bytes/s. Capacities are whole multiples of one unit, as far as they have one: bandwidths that
  /// were multiplied by an efficiency are only nearly so. `upper` makes none of them too small and
  /// serves for bounds, `lower` none too large and serves for plans.
  Rational upper_unit = 1, lower_unit = 1;
};

/// With the placement's relays as relays, or each merged with the rank that `adopters` gives it:
/// what moves between the two is free then, which no schedule minds.
PackingProblem packing_problem(const Router& router, const Placement& placement,
                               const std::vector<int>& adopters = {});

/// Two ranks that no arcs join, if there are.
std::optional<std::pair<int, int>> unconnected_pair(const PackingProblem& problem);

/// An edge of a tree: the vertices passed between two ranks or relays and the resources used, in
/// order.
struct PackedEdge {
  int from = 0, to = 0;
  std::vector<int> vertices;
  std::vector<int> resources;
};
/// An edge for every rank and every relay joined but one.
using SpanningTree = std::vector<PackedEdge>;

/// Weights, rate and limit in the problem's unit.
struct TreePacking {
  std::vector<SpanningTree> trees;
  std::vector<Rational> weights;
  Rational rate;                 ///< sum of the weights
  std::vector<Rational> prices;  ///< of one load, by resource; the cheapest tree costs 1
  /// What the prices prove: sum of capacity * price. Equal to `rate` on machines of up to some
  /// hundred links; a little above on larger ones, which are not solved exactly. With many relays
  /// (see cheapest_tree.h) it may be too low.
  Rational limit;
};

/// The best packing by column generation, recovered and proved in exact arithmetic. `limit` is a
/// proof and the weights overload nothing however the search went. \pre at least
/// two ranks, all connected.
TreePacking pack_spanning_trees(const PackingProblem& problem);

/// The rank or relay from which the farthest is nearest, counted in edges, and how far that is.
struct TreeCentre {
  int rank = 0;
  int height = 0;
};
TreeCentre centre_of(const SpanningTree& tree);

}  // namespace espalier
