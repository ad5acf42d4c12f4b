// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/hash.h"

namespace espalier {

/// Entries of the tables that inputs and results are made from (see data.cpp for why).
inline constexpr std::int64_t kPatternPeriod = 4093;

/// By how much the table is rotated when it is gone through for the `round`th time.
constexpr std::int64_t pattern_phase(std::int64_t round) {
  return static_cast<std::int64_t>(mix64(static_cast<std::uint64_t>(round)) %
                                   static_cast<std::uint64_t>(kPatternPeriod));
}

/// The entry of its table that element `element` of an input is. C++17: device compilers read this
/// too.
constexpr std::int64_t pattern_position(std::int64_t element) {
  return (element + pattern_phase(element / kPatternPeriod)) % kPatternPeriod;
}

}  // namespace espalier
