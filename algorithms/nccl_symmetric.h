// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "algorithms/algorithm.h"
#include "nccl/choice.h"

// Programs of NCCL's kernels over symmetric memory. Private to the room.

namespace espalier {

/// \pre `choice` is NcclAlgorithm::symmetric, for a message of `bytes`
Program nccl_symmetric_program(const BuildRequest& request, double bytes, const NcclChoice& choice);

/// The lanes of a block, among which its threads are divided.
int nccl_symmetric_lanes(const BuildRequest& request, const NcclChoice& choice);

}  // namespace espalier
