// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/graph/capacity_graph.h"
#include "planner/graph/work_budget.h"
#include "planner/trees/tree_rate.h"

namespace espalier {

/// Trees that go from one rank to another the same way.
struct Strand {
  std::vector<NodeId> path;  ///< nodes between the two
  std::int64_t trees = 0;
};

/// A complete directed graph over the ranks: how many trees may pass from one to another, and which
/// way. Private to this room.
class RankGraph {
 public:
  explicit RankGraph(int ranks)
      : ranks_(ranks),
        strands_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)) {}
  int ranks() const { return ranks_; }
  std::vector<Strand>& strands(int from, int to) { return strands_[index(from, to)]; }
  const std::vector<Strand>& strands(int from, int to) const { return strands_[index(from, to)]; }
  std::int64_t trees(int from, int to) const;

 private:
  std::size_t index(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) +
           static_cast<std::size_t>(to);
  }
  int ranks_;
  std::vector<std::vector<Strand>> strands_;
};

/// Removes the vertices that only pass traffic on, one by one: part of an arc into the vertex and
/// of one out of it become an arc past it, as long as every rank keeps a flow of the whole supply.
/// Bang-Jensen, Frank and Jackson (1995) prove that this ends well when as much enters every such
/// vertex as leaves it, which holds on full-duplex machines without staging; as used by ForestColl
/// (arXiv 2402.06787). Nothing when it gets stuck, which can happen on other machines.
/// `budget`: of arcs looked at; throws OutOfBudget when it is spent.
/// \pre reaches_all(graph, arc_trees, supply)
std::optional<RankGraph> split_off_switches(const CapacityGraph& graph,
                                            const std::vector<std::int64_t>& arc_trees,
                                            const Supply& supply, const Topology& topology,
                                            WorkBudget& budget);

}  // namespace espalier
