// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/program.h"

namespace espalier {

/// The path that transfers between two places have to take, as `via` names it; empty: the router
/// chooses.
using WayBetween = std::function<std::string(PlaceId from, PlaceId to)>;

/// The program with a path for every transfer of an op that names none. An op whose operands come
/// by different ways becomes several, one after the other on its lane, which fold in the same
/// order. Nothing when an op can't be divided so: its result goes elsewhere by another way than its
/// operands come, or it reads what it would overwrite. \pre `program` passed `verify` (R1 to R6)
std::optional<Program> reroute(const Program& program, const WayBetween& way);

}  // namespace espalier
