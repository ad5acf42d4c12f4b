// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/data.h"

namespace espalier {

/// Which instructions the kernels may use: what every processor of the architecture has, or AVX2
/// and F16C (x86 since 2013).
enum class KernelSet : std::uint8_t { baseline, avx2 };

/// The best set this processor runs.
KernelSet best_kernel_set();

/// dst[i] = srcs[0][i] (+) srcs[1][i] (+) ... for `count` elements, folded from the left and
/// rounded to the type after every operation, so that the bits equal those of `interpret` (the
/// payload of a NaN aside). Every source is read once; one source is a copy. \pre `srcs` is not
/// empty; every pointer is aligned to the element; a source either is `dst` or does not overlap it.
void combine(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> srcs,
             std::int64_t count, KernelSet set = best_kernel_set());

}  // namespace espalier
