// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "algorithms/algorithm.h"
#include "nccl/choice.h"

// Private to the room.

namespace espalier {

/// Trees over the ranks, one for every channel: a chain in every node, and between nodes one of two
/// binary trees that complement each other (NVIDIA/nccl src/device/all_reduce.h: runTreeSplit).
Program nccl_tree_program(const BuildRequest& request, double bytes, const NcclChoice& choice);

/// About how many ops it has.
double ops_of_nccl_tree(const BuildRequest& request, double bytes, const NcclChoice& choice);

/// Rounds alike: see Algorithm::rounds.
std::int64_t rounds_of_nccl_tree(const BuildRequest& request, double bytes,
                                 const NcclChoice& choice);

/// How it folds: where every channel's tree is that of the channel before, with every rank of a
/// node moved on to the next. Nothing where it does not.
std::optional<Fold> fold_nccl_tree(const BuildRequest& request, double bytes,
                                   const NcclChoice& choice);

}  // namespace espalier
