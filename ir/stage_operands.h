// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "ir/program.h"

namespace espalier {

/// Whether a source of a combine is to be brought to the place that carries it out.
using IsStaged = std::function<bool(const Op& op, std::size_t source)>;

/// The program with sources copied to scratch by those who have them, and read there: for runtimes
/// that can't read some memory of others, or add up only what lies at hand. Copies have lanes of
/// their own, one for each lane that they serve. `staged` gets their number. Nothing else changes
/// but that dependencies follow from data flow. \pre `program` passed `verify`
Program stage_operands(const Program& program, const IsStaged& is_staged, std::size_t& staged);

}  // namespace espalier
