// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "exec/cuda/elements.h"

namespace espalier::cuda {

/// What a thread loads and stores at once.
struct alignas(16) Pack {
  std::uint32_t words[4];
};
inline constexpr int kPackBytes = sizeof(Pack);

/// What lies at an address aligned for it. Buffers hold bytes that may have been written as another
/// type; compilers make one access of this copy.
template <class T>
ESPALIER_DEVICE T load(const std::byte* from) {
  T value;
  std::memcpy(&value, __builtin_assume_aligned(from, alignof(T)), sizeof value);
  return value;
}

template <class T>
ESPALIER_DEVICE void store(std::byte* to, const T& value) {
  std::memcpy(__builtin_assume_aligned(to, alignof(T)), &value, sizeof value);
}

/// The largest power of two, up to the size of a pack, that an address is a multiple of.
ESPALIER_DEVICE inline int alignment_of(const std::byte* address) {
  const auto low = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(address)) % kPackBytes;
  return low == 0 ? kPackBytes : static_cast<int>(low & (~low + 1));
}

/// A pack loaded as several words.
template <class Word>
ESPALIER_DEVICE Pack load_words(const std::byte* from) {
  constexpr int kWords = kPackBytes / static_cast<int>(sizeof(Word));
  Word words[kWords];
  for (int i = 0; i < kWords; ++i) words[i] = load<Word>(from + i * sizeof(Word));
  Pack pack;
  std::memcpy(&pack, words, sizeof pack);
  return pack;
}

/// Loads a pack in the widest words that `alignment` allows; T is what the address is aligned to
/// at least.
template <class T>
ESPALIER_DEVICE Pack load_pack(const std::byte* from, int alignment) {
  if (alignment == kPackBytes) return load<Pack>(from);
  if (sizeof(T) == 8 || alignment == 8) return load_words<std::uint64_t>(from);
  if (sizeof(T) == 4 || alignment == 4) return load_words<std::uint32_t>(from);
  if (sizeof(T) == 2 || alignment == 2) return load_words<std::uint16_t>(from);
  return load_words<std::uint8_t>(from);
}

}  // namespace espalier::cuda
