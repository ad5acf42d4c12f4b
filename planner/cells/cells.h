// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "planner/packing/packing_problem.h"

// Private to the room.

namespace espalier {

/// A machine taken apart at its hub, the switches that join hosts (on a single host: NVSwitches),
/// into cells that are alike: vertex i of one cell stands to its neighbours, its links and the hub
/// as vertex i of any other does. Every permutation of the cells is then an automorphism of the
/// machine.
struct Cells {
  int ranks = 0;                            ///< of one cell; its vertices 0..ranks-1
  std::vector<std::vector<int>> vertices;   ///< of the problem, by cell
  std::vector<int> cell, position;          ///< by vertex; -1 in the hub
  std::vector<std::vector<int>> resources;  ///< of the problem, by cell, in like order

  int count() const { return static_cast<int>(vertices.size()); }
  bool in_hub(int vertex) const { return cell[static_cast<std::size_t>(vertex)] < 0; }
};

/// Nothing where there are fewer than two cells, they differ in anything that a planner sees, or
/// something with a capacity belongs to several of them or to the hub alone. \pre no relays
std::optional<Cells> find_cells(const PackingProblem& problem, const Topology& topology);

}  // namespace espalier
