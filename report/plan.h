// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "scenarios/planned.h"

namespace espalier {

/// "3/28": a part of the message in lowest terms.
std::string part_of_message(std::int64_t units, const Forest& forest);

/// A Graphviz graph with a cluster for every tree: `espalier plan ... --dot | dot -Tsvg`. Arrows
/// point where data goes.
std::string plan_dot(const Planned& planned);

}  // namespace espalier
