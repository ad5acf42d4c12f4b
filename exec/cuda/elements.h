// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "exec/operators.h"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
/// Marks what runs on the device and, in tests, on the host. C++17 throughout: CUDA 11 knows no
/// more.
#define ESPALIER_DEVICE __host__ __device__
#else
#include "exec/half_conversion.h"
#define ESPALIER_DEVICE
#endif

// How often the device compiler copies the loop that follows; others do as they like.
#if defined(__CUDA_ARCH__)
#define ESPALIER_PRAGMA(text) _Pragma(#text)
#define ESPALIER_UNROLL(times) ESPALIER_PRAGMA(unroll times)
#else
#define ESPALIER_UNROLL(times)
#endif

namespace espalier::cuda {

/// An element type of the messages: how it is stored, and as what it is computed with.
template <class T>
struct Native {
  using Storage = T;
  ESPALIER_DEVICE static T decode(T stored) { return stored; }
  ESPALIER_DEVICE static T encode(T value) { return value; }
};

/// IEEE binary16, rounded to nearest, ties to even.
struct Half {
  using Storage = std::uint16_t;
#if defined(__CUDACC__)
  ESPALIER_DEVICE static float decode(Storage stored) {
    __half_raw raw;
    raw.x = stored;
    return __half2float(__half(raw));
  }
  ESPALIER_DEVICE static Storage encode(float value) {
    return static_cast<__half_raw>(__float2half_rn(value)).x;
  }
#else
  static float decode(Storage stored) {
    float value = 0;
    HalfCodec::to_float(&stored, &value, 1);
    return value;
  }
  static Storage encode(float value) {
    Storage stored = 0;
    HalfCodec::from_float(&value, &stored, 1);
    return stored;
  }
#endif
};

/// The upper half of a float, rounded to nearest, ties to even. In integer arithmetic where devices
/// have no instruction for it, before compute capability 8.0.
struct Bfloat16 {
  using Storage = std::uint16_t;
  ESPALIER_DEVICE static float decode(Storage stored) {
    const std::uint32_t bits = static_cast<std::uint32_t>(stored) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  ESPALIER_DEVICE static Storage encode(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return static_cast<__nv_bfloat16_raw>(__float2bfloat16_rn(value)).x;
#else
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    // See Bfloat16Codec of exec/half_conversion.h.
    const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    const std::uint32_t quiet = (bits >> 16) | 0x40;
    return static_cast<Storage>((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet : rounded);
#endif
  }
};

/// a (+) b, rounded to the type. What is one of the two stays as it is stored.
template <class Element, class Op>
ESPALIER_DEVICE typename Element::Storage combine_stored(typename Element::Storage a,
                                                         typename Element::Storage b) {
  if constexpr (std::is_same_v<Op, Min> || std::is_same_v<Op, Max>) {
    return Op::takes_second(Element::decode(a), Element::decode(b)) ? b : a;
  } else {
    return Element::encode(Op::apply(Element::decode(a), Element::decode(b)));
  }
}

}  // namespace espalier::cuda
