// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "ir/data.h"

namespace espalier {

/// Random bits without the largest exponents: nothing becomes a NaN, whose payload is nobody's
/// promise, but denormals, ties and both signs occur.
inline std::vector<std::byte> random_elements(DataType type, std::int64_t count,
                                              std::mt19937_64& random) {
  const std::size_t size = size_of(type);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const bool floats = type != DataType::int32 && type != DataType::int64 && type != DataType::uint8;
  for (std::size_t last = size - 1; floats && last < bytes.size(); last += size) {
    bytes[last] &= std::byte{0x8F};  // the upper bits of the exponent of every format
  }
  return bytes;
}

}  // namespace espalier
