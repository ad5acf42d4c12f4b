// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

namespace espalier {

/// The reduction operators on values of the types that processors compute with, the same for host
/// and device kernels: constant expressions, and C++17, so that device compilers take them as they
/// are. Where operands do not compare (a NaN) or are equal, min and max give the first one.

/// Integers wrap, so they are added and multiplied as unsigned numbers of at least int's width.
template <class T>
using Arithmetic =
    std::conditional_t<std::is_floating_point_v<T>, T,
                       std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>>;

struct Sum {
  template <class T>
  [[gnu::always_inline]] static constexpr T apply(T a, T b) {
    return static_cast<T>(static_cast<Arithmetic<T>>(a) + static_cast<Arithmetic<T>>(b));
  }
};
struct Prod {
  template <class T>
  [[gnu::always_inline]] static constexpr T apply(T a, T b) {
    return static_cast<T>(static_cast<Arithmetic<T>>(a) * static_cast<Arithmetic<T>>(b));
  }
};
struct Min {
  template <class T>
  [[gnu::always_inline]] static constexpr bool takes_second(T a, T b) {
    return b < a;
  }
  template <class T>
  [[gnu::always_inline]] static constexpr T apply(T a, T b) {
    return takes_second(a, b) ? b : a;
  }
};
struct Max {
  template <class T>
  [[gnu::always_inline]] static constexpr bool takes_second(T a, T b) {
    return a < b;
  }
  template <class T>
  [[gnu::always_inline]] static constexpr T apply(T a, T b) {
    return takes_second(a, b) ? b : a;
  }
};

}  // namespace espalier
