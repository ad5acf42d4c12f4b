// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "exec/cuda/elements.h"
#include "exec/cuda/packs.h"
#include "exec/cuda/pair_arithmetic.h"

namespace espalier::cuda {

/// One of the threads that carry a body out together: each does its share, in any order.
struct Worker {
  std::int64_t index = 0;
  std::int64_t count = 1;
};

/// What a thread has under way at a time: packs of each of a few sources. Loads that do not wait
/// for each other hide how long memory takes, and there are few enough to leave a multiprocessor
/// room for four blocks.
template <int kPacksEach, int kSourcesEach>
struct InFlight {
  static constexpr int kPacks = kPacksEach;
  static constexpr int kSources = kSourcesEach;
};
using FoldInFlight = InFlight<2, 4>;
using CopyInFlight = InFlight<4, 1>;

template <class Element, class Op>
ESPALIER_DEVICE Pack combine_packs(const Pack& a, const Pack& b) {
  Pack result;
#if defined(__CUDA_ARCH__)
  if constexpr (PairArithmetic<Element, Op>::kExists) {
    for (int i = 0; i < 4; ++i) {
      result.words[i] = PairArithmetic<Element, Op>::apply(a.words[i], b.words[i]);
    }
    return result;
  }
#endif
  using T = typename Element::Storage;
  constexpr int kLanes = kPackBytes / static_cast<int>(sizeof(T));
  T left[kLanes];
  T right[kLanes];
  std::memcpy(left, &a, sizeof a);
  std::memcpy(right, &b, sizeof b);
  for (int i = 0; i < kLanes; ++i) left[i] = combine_stored<Element, Op>(left[i], right[i]);
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

/// Packs `first`, first + step, ..., so many, which all exist; all sources are aligned to packs.
template <class Element, class Op, int kPacks, int kSources>
ESPALIER_DEVICE void fold_aligned(std::byte* dst, const std::byte* const* sources, int source_count,
                                  std::int64_t base_bytes, std::int64_t first, std::int64_t step) {
  const auto offset = [&](int i) { return base_bytes + (first + i * step) * kPackBytes; };
  Pack partial[kPacks] = {};
  ESPALIER_UNROLL(1)
  for (int s = 0; s < source_count; s += kSources) {
    Pack loaded[kSources][kPacks] = {};
    ESPALIER_UNROLL(kSources)
    for (int j = 0; j < kSources; ++j) {
      if (s + j >= source_count) continue;
      ESPALIER_UNROLL(kPacks)
      for (int i = 0; i < kPacks; ++i) loaded[j][i] = load<Pack>(sources[s + j] + offset(i));
    }
    ESPALIER_UNROLL(kSources)
    for (int j = 0; j < kSources; ++j) {
      if (s + j >= source_count) continue;
      ESPALIER_UNROLL(kPacks)
      for (int i = 0; i < kPacks; ++i) {
        partial[i] =
            s + j == 0 ? loaded[j][i] : combine_packs<Element, Op>(partial[i], loaded[j][i]);
      }
    }
  }
  ESPALIER_UNROLL(kPacks)
  for (int i = 0; i < kPacks; ++i) store(dst + offset(i), partial[i]);
}

/// One pack, of sources that lie as they like.
template <class Element, class Op>
ESPALIER_DEVICE void fold_unaligned(std::byte* dst, const std::byte* const* sources,
                                    int source_count, std::int64_t offset_bytes) {
  using T = typename Element::Storage;
  Pack partial = {};
  ESPALIER_UNROLL(1)
  for (int s = 0; s < source_count; ++s) {
    const std::byte* const source = sources[s] + offset_bytes;
    const Pack loaded = load_pack<T>(source, alignment_of(source));
    partial = s == 0 ? loaded : combine_packs<Element, Op>(partial, loaded);
  }
  store(dst + offset_bytes, partial);
}

/// dst[i] = sources[0][i] (+) sources[1][i] (+) ... for `elements` elements, as `combine` of
/// exec/host/combine_kernels.h has it: folded from the left, rounded after every operation, each
/// source read once, one source being a copy. Stores are whole aligned packs but for the elements
/// before the first aligned address and after the last; sources may lie as they like. \pre Every
/// pointer is aligned to the element; a source either is `dst` or does not overlap it.
template <class Element, class Op, class Loads = FoldInFlight>
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
  const std::int64_t base_bytes = head * static_cast<std::int64_t>(sizeof(T));
  bool aligned = true;
  for (int s = 0; s < source_count; ++s) {
    aligned = aligned && alignment_of(sources[s] + base_bytes) == kPackBytes;
  }
  const std::int64_t step = worker.count;
  std::int64_t pack = worker.index;
  if (!aligned) {
    for (; pack < packs; pack += step) {
      fold_unaligned<Element, Op>(dst, sources, source_count, base_bytes + pack * kPackBytes);
    }
    return;
  }
  constexpr int kPacks = Loads::kPacks;
  for (; pack + (kPacks - 1) * step < packs; pack += kPacks * step) {
    fold_aligned<Element, Op, kPacks, Loads::kSources>(dst, sources, source_count, base_bytes, pack,
                                                       step);
  }
  for (; pack < packs; pack += step) {
    fold_aligned<Element, Op, 1, Loads::kSources>(dst, sources, source_count, base_bytes, pack,
                                                  step);
  }
}

}  // namespace espalier::cuda
