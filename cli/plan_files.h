// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/json.h"
#include "scenarios/planned.h"

namespace espalier {

/// The plan as `espalier.plan/1` (docs/reports.md).
Json plan_json(const Planned& planned);

/// A Graphviz graph with a cluster for every tree: `espalier plan ... --dot | dot -Tsvg`. Arrows
/// point where data goes.
std::string plan_dot(const Planned& planned);

}  // namespace espalier
