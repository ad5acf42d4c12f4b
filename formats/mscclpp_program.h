// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "formats/foreign_program.h"
#include "formats/mscclpp_plan.h"

namespace espalier {

/// What a plan does: the program that it is under its collective's contract, verified, with
/// deadlocks and exceeded limits. Private to the room.
ForeignProgram mscclpp_program(const MscclppPlan& plan, const std::string& file);

}  // namespace espalier
