// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/hash.h"
#include "ir/program.h"

namespace espalier {

/// Of transfers between two places by one way (an index into Program::vias, or -1): different for
/// different ones, and mixed, as regular keys would share buckets. Not installed.
inline std::uint64_t transfer_key(PlaceId from, PlaceId to, int via) {
  static_assert(kMaxPlaces <= 1 << 20);
  const auto bits = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  return mix64(bits(from) << 40 | bits(to) << 16 | static_cast<std::uint16_t>(via));
}

}  // namespace espalier
