// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "formats/msccl_run.h"
#include "ir/block_program.h"

namespace espalier {

/// The thread blocks of a right MSCCL algorithm as its interpreter carries them out: nops are
/// dependencies of the step behind them, and sums of one destination that follow one another are
/// one step (ROCm/rccl src/misc/msccl/msccl_parser.cc). Private to the room.
std::shared_ptr<const BlockProgram> msccl_blocks(const MscclSteps& steps, const std::string& file);

}  // namespace espalier
