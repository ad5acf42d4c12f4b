// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "formats/format.h"
#include "formats/mscclpp_plan.h"
#include "ir/program.h"

namespace espalier {

/// The plan that moves a program's data: one thread block for each lane of a rank, in the order of
/// lanes, and at least one for each rank; ops where they are; dependencies between GPUs as signals
/// and waits, within a GPU as semaphores. Nothing touches a GPU that has not begun, and no GPU ends
/// before everybody is done with its buffers. Throws Error{unsupported} with everything that a plan
/// can't say. \pre `program` passed `verify`. Private to the room.
MscclppPlan mscclpp_plan_of(const Program& program, const WritingOptions& options,
                            std::vector<std::string>& notes);

}  // namespace espalier
