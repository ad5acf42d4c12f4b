// SPDX-License-Identifier: Apache-2.0
#include "exec/host/combine_kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "core/check.h"
#include "exec/half_conversion.h"
#include "exec/operators.h"

// One body of loops, compiled twice on x86: `[[gnu::always_inline]]` functions take the instruction
// set of the function they end up in, and only the thin outermost ones name it. Unlike
// target_clones this needs no ifunc, which the sanitizers' runtimes can't stand, and works with GCC
// and Clang.

namespace espalier {
namespace {

template <class Op, class T>
[[gnu::always_inline]] inline T fold(T a, T b) {
  return Op::apply(a, b);
}
template <class Op, class T, class... Rest>
[[gnu::always_inline]] inline T fold(T a, T b, Rest... rest) {
  return fold<Op>(Op::apply(a, b), rest...);
}

// `omp simd` says what the compiler can't know: a source that is `out` itself is no obstacle.
template <class Op, class T, class... Sources>
[[gnu::always_inline]] inline void fold_streams(T* out, std::int64_t count,
                                                const Sources*... sources) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) out[i] = fold<Op>(sources[i]...);
}

// Elements that are worked on at a time when the partial result has to wait somewhere: it stays in
// the first-level cache.
constexpr std::int64_t kBlock = 1024;

// Types that the processor computes with. Up to four sources are folded in registers; more than
// that and the partial result of a block waits in `partial` for the next three.
template <class Op, class T>
[[gnu::always_inline]] inline void fold_native(std::byte* dst, const std::byte* const* srcs,
                                               std::size_t src_count, std::int64_t count) {
  const auto source = [&](std::size_t i, std::int64_t begin) {
    return reinterpret_cast<const T*>(srcs[i]) + begin;
  };
  T partial[kBlock];
  const std::int64_t step = src_count > 4 ? kBlock : count;
  for (std::int64_t begin = 0; begin < count; begin += step) {
    const std::int64_t n = std::min(step, count - begin);
    const T* left = source(0, begin);
    for (std::size_t next = 1; next < src_count;) {
      const std::size_t taken = std::min<std::size_t>(3, src_count - next);
      const bool last = next + taken == src_count;
      T* const out = last ? reinterpret_cast<T*>(dst) + begin : partial;
      if (taken == 1) {
        fold_streams<Op>(out, n, left, source(next, begin));
      } else if (taken == 2) {
        fold_streams<Op>(out, n, left, source(next, begin), source(next + 1, begin));
      } else {
        fold_streams<Op>(out, n, left, source(next, begin), source(next + 1, begin),
                         source(next + 2, begin));
      }
      left = partial;
      next += taken;
    }
  }
}

// The 16-bit floats: computed as float, rounded to 16 bits after every operation.
template <class Op, class Codec>
[[gnu::always_inline]] inline void fold_converted(std::byte* dst, const std::byte* const* srcs,
                                                  std::size_t src_count, std::int64_t count) {
  constexpr std::int64_t kStep = kBlock / 2;
  float left[kStep];
  float right[kStep];
  std::uint16_t rounded[kStep];
  for (std::int64_t begin = 0; begin < count; begin += kStep) {
    const std::int64_t n = std::min(kStep, count - begin);
    const auto source = [&](std::size_t i) {
      return reinterpret_cast<const std::uint16_t*>(srcs[i]) + begin;
    };
    Codec::to_float(source(0), left, n);
    for (std::size_t i = 1; i < src_count; ++i) {
      Codec::to_float(source(i), right, n);
      fold_streams<Op>(left, n, left, right);
      if (i + 1 == src_count) break;
      Codec::from_float(left, rounded, n);
      Codec::to_float(rounded, left, n);
    }
    Codec::from_float(left, reinterpret_cast<std::uint16_t*>(dst) + begin, n);
  }
}

using Kernel = void (*)(std::byte*, const std::byte* const*, std::size_t, std::int64_t);

template <class Op, class T>
void baseline_kernel(std::byte* dst, const std::byte* const* srcs, std::size_t src_count,
                     std::int64_t count) {
  if constexpr (std::is_arithmetic_v<T>) {
    fold_native<Op, T>(dst, srcs, src_count, count);
  } else {
    fold_converted<Op, T>(dst, srcs, src_count, count);
  }
}

#if defined(__x86_64__)
template <class Op, class T>
[[gnu::target("avx2,f16c")]] void avx2_kernel(std::byte* dst, const std::byte* const* srcs,
                                              std::size_t src_count, std::int64_t count) {
  if constexpr (std::is_arithmetic_v<T>) {
    fold_native<Op, T>(dst, srcs, src_count, count);
  } else {
    fold_converted<Op, T>(dst, srcs, src_count, count);
  }
}
#endif

struct BaselineSet {
  using Half = HalfCodec;
  template <class Op, class T>
  static constexpr Kernel kernel = baseline_kernel<Op, T>;
};

#if defined(__x86_64__)
struct Avx2Set {
  using Half = HalfCodecF16c;
  template <class Op, class T>
  static constexpr Kernel kernel = avx2_kernel<Op, T>;
};
#else
using Avx2Set = BaselineSet;
#endif

template <class Set, class Op>
Kernel kernel_of(DataType type) {
  switch (type) {
    case DataType::float32:
      return Set::template kernel<Op, float>;
    case DataType::float64:
      return Set::template kernel<Op, double>;
    case DataType::float16:
      return Set::template kernel<Op, typename Set::Half>;
    case DataType::bfloat16:
      return Set::template kernel<Op, Bfloat16Codec>;
    case DataType::int32:
      return Set::template kernel<Op, std::int32_t>;
    case DataType::int64:
      return Set::template kernel<Op, std::int64_t>;
    case DataType::uint8:
      return Set::template kernel<Op, std::uint8_t>;
  }
  CHECK(false);
  return nullptr;
}

template <class Set>
Kernel kernel_of(DataType type, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return kernel_of<Set, Sum>(type);
    case ReduceOp::prod:
      return kernel_of<Set, Prod>(type);
    case ReduceOp::min:
      return kernel_of<Set, Min>(type);
    case ReduceOp::max:
      return kernel_of<Set, Max>(type);
  }
  CHECK(false);
  return nullptr;
}

}  // namespace

KernelSet best_kernel_set() {
#if defined(__x86_64__)
  // Every processor with AVX2 has F16C, which Clang 14 can't ask for.
  static const bool avx2 = __builtin_cpu_supports("avx2");
  return avx2 ? KernelSet::avx2 : KernelSet::baseline;
#else
  return KernelSet::baseline;
#endif
}

void combine(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> srcs,
             std::int64_t count, KernelSet set) {
  CHECK(!srcs.empty() && count >= 0);
  if (count == 0) return;
  if (srcs.size() == 1) {
    if (srcs[0] != dst) std::memcpy(dst, srcs[0], static_cast<std::size_t>(count) * size_of(type));
    return;
  }
  const Kernel kernel =
      set == KernelSet::avx2 ? kernel_of<Avx2Set>(type, op) : kernel_of<BaselineSet>(type, op);
  kernel(dst, srcs.data(), srcs.size(), count);
}

}  // namespace espalier
