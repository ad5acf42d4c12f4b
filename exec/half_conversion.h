// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace espalier {

/// Conversions of `count` 16-bit floats to float (exact) and back (to nearest, ties to even), in
/// blocks so that they vectorise. A codec is a type with two static functions, for the kernels.

/// IEEE binary16, on any processor.
struct HalfCodec {
  static void to_float(const std::uint16_t* from, float* to, std::int64_t count);
  static void from_float(const float* from, std::uint16_t* to, std::int64_t count);
};

#if defined(__x86_64__)
/// IEEE binary16 on processors with AVX and F16C.
struct HalfCodecF16c {
  static void to_float(const std::uint16_t* from, float* to, std::int64_t count);
  static void from_float(const float* from, std::uint16_t* to, std::int64_t count);
};
#endif

/// bfloat16, the upper half of a float. Inline, to be compiled for the caller's instruction set.
struct Bfloat16Codec {
  [[gnu::always_inline]] static void to_float(const std::uint16_t* from, float* to,
                                              std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(from[i]) << 16);
    }
  }

  [[gnu::always_inline]] static void from_float(const float* from, std::uint16_t* to,
                                                std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(from[i]);
      // Adding just under half a unit of the last place kept, plus its lowest bit, carries where
      // the value must be rounded up. A NaN could carry into infinity, so it is made quiet instead.
      const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
      const std::uint32_t quiet = (bits >> 16) | 0x40;
      to[i] = static_cast<std::uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet : rounded);
    }
  }
};

}  // namespace espalier
