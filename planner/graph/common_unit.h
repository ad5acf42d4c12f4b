// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "planner/graph/exact.h"

// Private to the room.

namespace espalier {

/// Bandwidths as whole multiples of one unit, as far as they have one: bandwidths that were
/// multiplied by an efficiency are only nearly so.
struct CommonUnit {
  std::vector<std::int64_t> multiples;  ///< 0 for bandwidths that round to 0 bytes/s
  /// Bytes/s. `upper` makes no bandwidth too small and serves for bounds, `lower` none too large
  /// and serves for plans.
  Rational lower = 1, upper = 1;
};

/// A machine and one that is faster by a common factor must have the same plans. So bandwidths
/// (bytes per second) that are whole multiples of a unit up to rounding are treated as such;
/// others are whole bytes per second divided by their greatest common divisor.
CommonUnit in_common_unit(const std::vector<double>& bytes_per_s);

}  // namespace espalier
