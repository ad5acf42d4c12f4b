// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "scenarios/planned.h"

namespace espalier {

/// "3/28": a part of the message in lowest terms.
std::string part_of_message(std::int64_t units, const Forest& forest);

/// Of `plan --csv`: a row for each direction of the links that a plan may use.
std::string plans_csv(const std::vector<Planned>& plans);
/// Of `plan --json`, as `espalier.plan/2`.
std::string plans_json(const std::vector<Planned>& plans);

/// A Graphviz graph with a cluster for every tree: `espalier plan ... --dot | dot -Tsvg`. Arrows
/// point where data goes.
std::string plan_dot(const Planned& planned);

}  // namespace espalier
