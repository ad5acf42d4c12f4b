// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace espalier {

/// The splitmix64 finaliser: a bijection on 64-bit words that passes the usual randomness tests.
/// Source: S. Vigna, https://prng.di.unimi.it/splitmix64.c (public domain); constants only.
constexpr std::uint64_t mix64(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace espalier
