// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exec/cuda/elements.h"

// For device compilers alone.
#if defined(__CUDA_ARCH__)

namespace espalier::cuda {

/// Two elements of 16 bits at a time, where devices have instructions for it. The bits are those of
/// combine_stored: a sum or product of two such numbers that is rounded to float and then to 16
/// bits is the one that is rounded once, because a float has at least 2 p + 2 bits, p being those
/// of the element: 11 or 8 (Figueroa, "When is double rounding innocuous?", 1995).
template <class Element, class Op>
struct PairArithmetic {
  static constexpr bool kExists = false;
};

template <class Pair>
__device__ Pair pair_of(std::uint32_t word) {
  Pair pair;
  std::memcpy(&pair, &word, sizeof pair);
  return pair;
}
template <class Pair>
__device__ std::uint32_t word_of(const Pair& pair) {
  std::uint32_t word;
  std::memcpy(&word, &pair, sizeof word);
  return word;
}

// The _rn forms are never contracted into a multiplication and addition rounded once.
template <>
struct PairArithmetic<Half, Sum> {
  static constexpr bool kExists = true;
  __device__ static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
    return word_of(__hadd2_rn(pair_of<__half2>(a), pair_of<__half2>(b)));
  }
};
template <>
struct PairArithmetic<Half, Prod> {
  static constexpr bool kExists = true;
  __device__ static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
    return word_of(__hmul2_rn(pair_of<__half2>(a), pair_of<__half2>(b)));
  }
};
#if __CUDA_ARCH__ >= 900
template <>
struct PairArithmetic<Bfloat16, Sum> {
  static constexpr bool kExists = true;
  __device__ static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
    return word_of(__hadd2_rn(pair_of<__nv_bfloat162>(a), pair_of<__nv_bfloat162>(b)));
  }
};
template <>
struct PairArithmetic<Bfloat16, Prod> {
  static constexpr bool kExists = true;
  __device__ static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
    return word_of(__hmul2_rn(pair_of<__nv_bfloat162>(a), pair_of<__nv_bfloat162>(b)));
  }
};
#endif

}  // namespace espalier::cuda

#endif
