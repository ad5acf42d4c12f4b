// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "ir/data_type.h"

// The kernels, as functions that put one launch into a stream of the current device and return what
// CUDA says about the launch. C++17: CUDA 11 knows no more.

namespace espalier::cuda {

/// Sources that a launch carries itself; where there are more, a table in device memory does.
inline constexpr int kMaxInlineSources = 16;

/// Blocks of a fold or a copy that a multiprocessor holds at a time: the compiler is told to use no
/// more registers than that leaves.
inline constexpr int kFoldBlocksPerProcessor = 4;

/// Where a fold finds the addresses of its sources.
struct SourceList {
  const std::byte* addresses[kMaxInlineSources];
  const std::byte* const* table;  ///< in device memory; null: they are `addresses`
  int count;
};

/// As many threads as the work is worth, but not more blocks than that.
struct Extent {
  std::int64_t elements = 0;
  int max_blocks = 1;
};

/// dst = sources[0] (+) sources[1] (+) ...; see fold_body.h. At least two sources.
cudaError_t launch_fold(DataType type, ReduceOp op, std::byte* dst, const SourceList& sources,
                        Extent extent, cudaStream_t stream);

/// Copies bytes from where the device can read to where it can write.
cudaError_t launch_copy(std::byte* dst, const std::byte* source, Extent bytes, cudaStream_t stream);

/// See fill_body. `table`: kPatternPeriod elements of `element_bytes` bytes in device memory.
cudaError_t launch_fill(std::size_t element_bytes, std::byte* out, std::int64_t first,
                        const std::byte* table, Extent extent, cudaStream_t stream);

/// Adds to `*count`, in memory of the device, how many elements are not as launch_fill makes them.
cudaError_t launch_count_different(std::size_t element_bytes, const std::byte* got,
                                   std::int64_t first, const std::byte* table,
                                   unsigned long long* count, Extent extent, cudaStream_t stream);

/// Adds to `*count`, in memory of the device, how many of the bytes are not `value`.
cudaError_t launch_count_other_bytes(const std::byte* bytes, std::byte value,
                                     unsigned long long* count, Extent extent, cudaStream_t stream);

/// Keeps one thread of the device busy.
cudaError_t launch_wait(double duration_s, cudaStream_t stream);

/// What CUDA says when asked for a kernel's image on the current device: an error where the
/// kernels were not compiled for such a device.
cudaError_t find_kernels();

}  // namespace espalier::cuda
