// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/backend.h"

namespace espalier {

/// Simulates an interpreter's thread blocks (BlockInterpreter). Of a message of many loops the
/// first ones are simulated, until one takes as long as the other; all further ones are taken to
/// last as long. Throws Error{runtime} where they hang, unless there are limits
/// (RunOptions::limits).
RunReport simulate_blocks(const Program& program, const BlockProgram& blocks, const Target& target,
                          const RunOptions& options);

}  // namespace espalier
