// SPDX-License-Identifier: Apache-2.0
#include "exec/half_conversion.h"

#include <Eigen/Core>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace espalier {

void HalfCodec::to_float(const std::uint16_t* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = Eigen::half_impl::half_to_float(Eigen::half_impl::raw_uint16_to_half(from[i]));
  }
}

void HalfCodec::from_float(const float* from, std::uint16_t* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = Eigen::half_impl::float_to_half_rtne(from[i]).x;
  }
}

#if defined(__x86_64__)
namespace {
constexpr std::int64_t kLanes = 8;  // floats of an AVX register
}

[[gnu::target("avx,f16c")]] void HalfCodecF16c::to_float(const std::uint16_t* from, float* to,
                                                         std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
  }
  for (; i < count; ++i) to[i] = _cvtsh_ss(from[i]);
}

[[gnu::target("avx,f16c")]] void HalfCodecF16c::from_float(const float* from, std::uint16_t* to,
                                                           std::int64_t count) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), kNearest);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), half);
  }
  for (; i < count; ++i) to[i] = _cvtss_sh(from[i], kNearest);
}
#endif

}  // namespace espalier
