// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/findings.h"
#include "ir/verify_data.h"

namespace espalier {

/// Checks a folded program on the ops that are there, which stand for those of all groups
/// (docs/ir.md, "Folded programs"): they run in the order they are written in, what conflicts is
/// ordered, and the results are right. Private to this room.
DataVerdict check_folded(const Program& program, Findings& findings);

}  // namespace espalier
