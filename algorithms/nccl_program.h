// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "nccl/choice.h"

// Programs of NCCL's kernels: a lane is a block, which carries its channel's part of the message
// round by round. Private to the room.

namespace espalier {

/// What `choice` does with a message of `bytes`. \pre it can do the request's collective
Program nccl_program(const BuildRequest& request, double bytes, const NcclChoice& choice);
/// See Algorithm::recipe. Of rings alone, in not too many parts.
std::optional<std::string> nccl_recipe(const BuildRequest& request, double bytes,
                                       const NcclChoice& choice);

/// Algorithm::rounds: those of rings and trees in which whole chunks of the message go around.
std::int64_t nccl_rounds(const BuildRequest& request, double bytes, const NcclChoice& choice);

/// How it folds: see Algorithm::folds.
std::vector<Fold> nccl_folds(const BuildRequest& request, double bytes, const NcclChoice& choice);

/// About how many ops it has, all groups of a folded one together.
double nccl_ops(const BuildRequest& request, double bytes, const NcclChoice& choice);

}  // namespace espalier
