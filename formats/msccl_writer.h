// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "formats/format.h"
#include "formats/msccl_algo.h"

namespace espalier {

/// The steps of a program that lower_to_msccl made: an op with a transfer is a step that sends and
/// one that receives, each in a thread block. Those of a lane are in the lane's; the other end's
/// are in the thread block of the lane of the same number there, where its peers allow that, and
/// else in one of its own. A step that receives and the one that sends the same on become one.
/// Thread blocks send what they have before they wait. `one_way`: none sends and receives. Nothing
/// when a thread block can't have one channel for both of its connections, which it has not then.
std::optional<MscclAlgo> write_msccl_steps(const Program& program, bool one_way,
                                           const WritingOptions& options);

}  // namespace espalier
