// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "planner/forest.h"

// Private to the room.

namespace espalier {

/// A plan for a machine of alike cells (see cells.h), for allreduce, allgather or reducescatter:
/// trees planned for one cell and the way to its neighbours, the same in all cells, and between
/// cells binary trees, turned so that every cell has its turn in every place. It takes the time of
/// planning one cell, and its trees are as high as the logarithm of the number of cells.
///
/// Nothing where there are no such cells, or GPUs would exchange data with more others than they
/// may map. What is best for a cell alone need not be best for all, as where a cell's own ranks are
/// joined by the hub: see is_good_by_cells.
///
/// \pre the ranks are connected; there are no relays
std::optional<Forest> plan_by_cells(Collective collective, const Router& router,
                                    const Placement& placement);

/// Whether the plan comes so near to the machine's bound that no search for a better one is worth
/// its time. On machines too large for a search it need not come as near.
bool is_good_by_cells(const Forest& forest, const Router& router, const Placement& placement);

/// Up to so many ranks plans are searched for as if no two were alike, which is exact.
inline constexpr int kMaxRanksWithoutCells = 64;
/// From so many ranks on, plans by cells that reach the bound are taken without such a search:
/// their trees are lower or share links more evenly, so that few strips keep more of the plan. On
/// two nodes of eight GPUs now one is better and now the other.
inline constexpr int kMinRanksByCells = 17;

}  // namespace espalier
