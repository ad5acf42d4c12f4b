// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "formats/format.h"
#include "formats/mscclpp_plan.h"

namespace espalier {

/// Reads an execution plan strictly: types, ranges, ids and references. Throws Error{input} with
/// everything that is wrong, and where the file is of an older generation than that of 2026. What
/// is not read, or only odd, is noted.
MscclppPlan read_mscclpp_plan(const FormatText& text, std::vector<ForeignNote>& notes);

}  // namespace espalier
