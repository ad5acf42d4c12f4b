// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/error.h"
#include "run/target.h"
#include "run/ways.h"

namespace espalier {

/// Rule R10: every transfer has a route on this machine,
/// and no GPU needs more peers than it can map.
std::vector<Diagnostic> check_routes(const Program& program, const Target& target);
/// `ways`: those of the program's groups that are run.
std::vector<Diagnostic> check_routes(const Program& program, const Target& target,
                                     const Ways& ways);

}  // namespace espalier
