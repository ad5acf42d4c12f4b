// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "algorithms/algorithm.h"
#include "nccl/choice.h"

// Private to the room.

namespace espalier {

/// Whether the choice is one of these.
bool is_across_nodes(const NcclChoice& choice);

/// An allreduce that first combines in every node, then across nodes, and then hands out in the
/// nodes, chunk by chunk, all stages at the same time: NVLS, NVLS tree and both forms of collnet.
/// \pre two nodes or more
Program nccl_across_nodes(const BuildRequest& request, double bytes, const NcclChoice& choice);

/// About how many ops it has.
double ops_across_nodes(double bytes, const NcclChoice& choice);

/// How it folds: into the heads of a node, and the channels of each that do the same. Nothing where
/// it does not.
std::optional<Fold> fold_nccl_across_nodes(const BuildRequest& request, double bytes,
                                           const NcclChoice& choice);

/// How many lanes of a rank belong to a channel of such a program: its stages.
inline constexpr int kNcclStages = 4;

}  // namespace espalier
