// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "ir/program.h"

namespace espalier {

/// The program with its ops in another order and on other lanes; dependencies stay what they are.
/// \pre `order` has every op once, each after all that it depends on, and `lanes`, by op of
/// `program`, one lane each.
Program reorder(const Program& program, std::span<const OpId> order,
                std::span<const std::uint16_t> lanes);

}  // namespace espalier
