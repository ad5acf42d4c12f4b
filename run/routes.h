// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/error.h"
#include "run/target.h"

namespace espalier {

/// Rule R10: every transfer has a route on this machine,
/// and no GPU needs more peers than it can map.
std::vector<Diagnostic> check_routes(const Program& program, const Target& target);

}  // namespace espalier
