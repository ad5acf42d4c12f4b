// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/error.h"
#include "formats/mscclpp_plan.h"

namespace espalier {

/// What the executor of MSCCL++ takes at most (src/core/include/execution_common.hpp, version 0.9).
inline constexpr int kMscclppOps = 64;        ///< of a thread block, those in pipelines included
inline constexpr int kMscclppChannels = 16;   ///< of a thread block and a type; remote buffers, too
inline constexpr int kMscclppOpChannels = 8;  ///< of an op
inline constexpr int kMscclppOpBuffers = 10;  ///< sources of an op; destinations, too
inline constexpr int kMscclppOpSemaphores = 16;
inline constexpr int kMscclppBarriers = 16;
inline constexpr int kMscclppPipelineOps = 16;

/// Every limit that a plan exceeds, as problems of rule "limit". Private to the room.
std::vector<Diagnostic> check_mscclpp_limits(const MscclppPlan& plan);

/// Ops of one thread block of which the later one may overtake the earlier one, since threads go on
/// until a nop (a barrier of the thread block) holds them: data that the next op overwrites, reads
/// or announces. One sentence each.
std::vector<std::string> missing_mscclpp_nops(const MscclppPlan& plan);

}  // namespace espalier
