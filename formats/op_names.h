// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "ir/program.h"

namespace espalier {

/// Replaces every "op 12" in messages and suggestions by what the foreign file calls that op: "gpu
/// 0, thread block 1, step 2 (rrc)", and lanes by the thread blocks that they are. Private to the
/// room.
void name_ops(std::vector<Diagnostic>& problems, const std::function<std::string(OpId)>& name);

}  // namespace espalier
