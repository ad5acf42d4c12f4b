// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exec/cuda/fold_body.h"
#include "exec/cuda/kernels.h"

namespace espalier::cuda {

inline constexpr int kThreads = 256;

__device__ inline Worker this_worker() {
  return {static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x,
          static_cast<std::int64_t>(gridDim.x) * blockDim.x};
}

/// Blocks for `items` pieces of work, one for each thread at a time.
inline unsigned blocks_for(std::int64_t items, int max_blocks) {
  const std::int64_t wanted = (items + kThreads - 1) / kThreads;
  const std::int64_t maximum = max_blocks < 1 ? 1 : max_blocks;
  return static_cast<unsigned>(wanted < 1 ? 1 : wanted < maximum ? wanted : maximum);
}

// An address of a parameter can be taken without copying it from compute capability 7.0 on. Only
// the device compiler is told: toolkits whose oldest device is older refuse the word elsewhere. The
// compiler of CUDA 11.8 breaks on it ("Broken function found", 11.8.89), and copies instead.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700 && __CUDACC_VER_MAJOR__ >= 12
#define ESPALIER_GRID_CONSTANT __grid_constant__
#else
#define ESPALIER_GRID_CONSTANT
#endif

template <class Element, class Op>
__global__ void __launch_bounds__(kThreads, kFoldBlocksPerProcessor)
    fold_kernel(std::byte* dst, const ESPALIER_GRID_CONSTANT SourceList sources,
                std::int64_t elements) {
  const std::byte* const* const addresses =
      sources.table != nullptr ? sources.table : sources.addresses;
  fold_body<Element, Op>(dst, addresses, sources.count, elements, this_worker());
}

template <class Element, class Op>
cudaError_t launch_fold_of(std::byte* dst, const SourceList& sources, Extent extent,
                           cudaStream_t stream) {
  // A thread for each pack while they last: small messages are done in one go. One more for the
  // elements before and after them.
  const std::int64_t bytes =
      extent.elements * static_cast<std::int64_t>(sizeof(typename Element::Storage));
  const std::int64_t packs = bytes / kPackBytes + 1;
  fold_kernel<Element, Op><<<blocks_for(packs, extent.max_blocks), kThreads, 0, stream>>>(
      dst, sources, extent.elements);
  return cudaGetLastError();
}

template <class Element>
cudaError_t launch_fold_with(ReduceOp op, std::byte* dst, const SourceList& sources, Extent extent,
                             cudaStream_t stream) {
  switch (op) {
    case ReduceOp::sum:
      return launch_fold_of<Element, Sum>(dst, sources, extent, stream);
    case ReduceOp::prod:
      return launch_fold_of<Element, Prod>(dst, sources, extent, stream);
    case ReduceOp::min:
      return launch_fold_of<Element, Min>(dst, sources, extent, stream);
    case ReduceOp::max:
      return launch_fold_of<Element, Max>(dst, sources, extent, stream);
  }
  return cudaErrorInvalidValue;
}

/// Their kernels are compiled in a file of their own.
cudaError_t launch_fold_of_floats(DataType type, ReduceOp op, std::byte* dst,
                                  const SourceList& sources, Extent extent, cudaStream_t stream);

}  // namespace espalier::cuda
