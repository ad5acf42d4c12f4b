// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace espalier {

/// Orders heaps by a number that is not negative and, where that is equal, by another one. Compared
/// as one integer, without a branch: which is smaller nobody can predict. (The bits of numbers that
/// are not negative are in their order.)
__extension__ using OrderKey = unsigned __int128;

inline OrderKey order_key(double number, std::uint64_t of_equal) {
  return OrderKey{std::bit_cast<std::uint64_t>(number)} << 64 | of_equal;
}

}  // namespace espalier
