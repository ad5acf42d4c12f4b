// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/forest.h"

// Private to the room.

namespace espalier {

/// If links share capacity (half duplex, media), planners split it before they know which transfers
/// need it, or count a medium each time that a path enters it. This raises the forest's rate to
/// what the fullest link allows, exactly; it does nothing on machines whose links share nothing.
void raise_to_fullest_link(Forest& forest, const Router& router, const Placement& placement);

/// The same up or down, on any machine: for planners that do not see every link their trees cross.
void set_to_fullest_link(Forest& forest, const Router& router, const Placement& placement);

}  // namespace espalier
