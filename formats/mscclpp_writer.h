// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/format.h"

namespace espalier {

/// The program as an execution plan: see `mscclpp_plan_of`. What is returned was read back, passed
/// `verify` and moves the same data. Private to the room.
Written write_mscclpp_plan(const Program& program, const WritingOptions& options);

}  // namespace espalier
