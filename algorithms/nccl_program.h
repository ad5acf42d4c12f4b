// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "algorithms/algorithm.h"
#include "nccl/choice.h"

// Programs of NCCL's kernels: a lane is a block, which carries its channel's part of the message
// round by round. Private to the room.

namespace espalier {

/// What `choice` does with a message of `bytes`. \pre it can do the request's collective
Program nccl_program(const BuildRequest& request, double bytes, const NcclChoice& choice);

}  // namespace espalier
