// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "planner/cells/cells.h"

// Private to the room.

namespace espalier {

/// What one cell has to do of a plan for all of them: a packing problem over the ranks of the first
/// cell, numbered as there, and one or two more that stand for all other cells. Links to the hub
/// are vertices of their own, one layer for the way out and one for the way in, so that nothing
/// passes through the cell from the hub to the hub without a stop at a rank.
struct CellProblem {
  PackingProblem problem;
  /// The rank that stands for the others: data comes from it (one way), or to and from it.
  int others = 0;
  /// One way: the rank that stands for where data goes on to; else as `others`.
  int onward = 0;
  std::vector<int> origin;  ///< vertex of the whole problem, by vertex; -1 for one without
};

/// Both ways, a use of a link between cells counts `uses` times: of all cells that a tree joins,
/// one has a little less than two neighbours on average.
CellProblem cell_problem(const PackingProblem& whole, const Cells& cells, int uses);

}  // namespace espalier
