// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "exec/cuda/elements.h"
#include "exec/cuda/packs.h"

namespace espalier::cuda {

/// One of the threads that carry a body out together: each does its share, in any order.
struct Worker {
  std::int64_t index = 0;
  std::int64_t count = 1;
};

/// Packs of every source that a thread has under way.
inline constexpr int kPacksInFlight = 4;

template <class Element, class Op>
ESPALIER_DEVICE Pack combine_packs(const Pack& a, const Pack& b) {
  using T = typename Element::Storage;
  constexpr int kLanes = kPackBytes / static_cast<int>(sizeof(T));
  T left[kLanes];
  T right[kLanes];
  std::memcpy(left, &a, sizeof a);
  std::memcpy(right, &b, sizeof b);
  for (int i = 0; i < kLanes; ++i) left[i] = combine_stored<Element, Op>(left[i], right[i]);
  Pack result;
  std::memcpy(&result, left, sizeof result);
  return result;
}

/// Element `element` of the result.
template <class Element, class Op>
ESPALIER_DEVICE void fold_element(std::byte* dst, const std::byte* const* sources, int source_count,
                                  std::int64_t element) {
  using T = typename Element::Storage;
  T value = load<T>(sources[0] + element * sizeof(T));
  for (int s = 1; s < source_count; ++s) {
    value = combine_stored<Element, Op>(value, load<T>(sources[s] + element * sizeof(T)));
  }
  store(dst + element * sizeof(T), value);
}

/// The packs of a message that a fold works on, after the elements before the first aligned
/// address.
struct PackRange {
  std::int64_t base_bytes = 0;
  std::int64_t packs = 0;
};

/// Packs `first`, first + step, ...: as many as are in flight at a time. With `kPlain` all of them
/// exist, and all sources are aligned to packs.
template <class Element, class Op, bool kPlain>
ESPALIER_DEVICE void fold_packs(std::byte* dst, const std::byte* const* sources, int source_count,
                                PackRange range, std::int64_t first, std::int64_t step) {
  Pack partial[kPacksInFlight] = {};
  for (int s = 0; s < source_count; ++s) {
    const std::byte* const source = sources[s] + range.base_bytes;
    const int alignment = kPlain ? kPackBytes : alignment_of(source);
    Pack loaded[kPacksInFlight] = {};
    for (int i = 0; i < kPacksInFlight; ++i) {
      const std::int64_t pack = first + i * step;
      if (!kPlain && pack >= range.packs) continue;
      loaded[i] = load_pack<typename Element::Storage>(source + pack * kPackBytes, alignment);
    }
    for (int i = 0; i < kPacksInFlight; ++i) {
      partial[i] = s == 0 ? loaded[i] : combine_packs<Element, Op>(partial[i], loaded[i]);
    }
  }
  for (int i = 0; i < kPacksInFlight; ++i) {
    const std::int64_t pack = first + i * step;
    if (kPlain || pack < range.packs) store(dst + range.base_bytes + pack * kPackBytes, partial[i]);
  }
}

/// dst[i] = sources[0][i] (+) sources[1][i] (+) ... for `elements` elements, as `combine` of
/// exec/combine_kernels.h has it: folded from the left, rounded after every operation, each source
/// read once, one source being a copy. Stores are whole aligned packs but for the elements before
/// the first aligned address and after the last; sources may lie as they like.
/// \pre Every pointer is aligned to the element; a source either is `dst` or does not overlap it.
template <class Element, class Op>
ESPALIER_DEVICE void fold_body(std::byte* dst, const std::byte* const* sources, int source_count,
                               std::int64_t elements, Worker worker) {
  using T = typename Element::Storage;
  constexpr std::int64_t kLanes = kPackBytes / static_cast<std::int64_t>(sizeof(T));
  const auto beyond = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(dst) % kPackBytes);
  const std::int64_t until_aligned =
      beyond == 0 ? 0 : (kPackBytes - beyond) / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t head = until_aligned < elements ? until_aligned : elements;
  const std::int64_t packs = (elements - head) / kLanes;

  const std::int64_t alone = elements - packs * kLanes;  // before and after the packs
  for (std::int64_t i = worker.index; i < alone; i += worker.count) {
    fold_element<Element, Op>(dst, sources, source_count, i < head ? i : i + packs * kLanes);
  }
  const PackRange range{head * static_cast<std::int64_t>(sizeof(T)), packs};
  bool aligned = true;
  for (int s = 0; s < source_count; ++s) {
    aligned = aligned && alignment_of(sources[s] + range.base_bytes) == kPackBytes;
  }
  const std::int64_t step = worker.count;
  for (std::int64_t first = worker.index; first < packs; first += kPacksInFlight * step) {
    if (aligned && first + (kPacksInFlight - 1) * step < packs) {
      fold_packs<Element, Op, true>(dst, sources, source_count, range, first, step);
    } else {
      fold_packs<Element, Op, false>(dst, sources, source_count, range, first, step);
    }
  }
}

}  // namespace espalier::cuda
