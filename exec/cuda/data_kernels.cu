// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/launch.cuh"
#include "exec/cuda/pattern_body.h"
#include "exec/cuda/with_word.h"

namespace espalier::cuda {
namespace {

__global__ void __launch_bounds__(kThreads, kFoldBlocksPerProcessor)
    copy_kernel(std::byte* dst, const std::byte* source, std::int64_t bytes) {
  fold_body<Native<std::uint8_t>, Sum, CopyInFlight>(dst, &source, 1, bytes, this_worker());
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    fill_kernel(T* out, std::int64_t first, std::int64_t count, const T* table) {
  fill_body(out, first, count, table, this_worker());
}

// Hardly any thread of a run that is right has something to add.
__device__ void add_to(unsigned long long* count, std::int64_t found) {
  if (found != 0) atomicAdd(count, static_cast<unsigned long long>(found));
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    count_different_kernel(const T* got, std::int64_t first, std::int64_t count, const T* table,
                           unsigned long long* different) {
  add_to(different, count_different_body(got, first, count, table, this_worker()));
}

__global__ void __launch_bounds__(kThreads)
    count_other_bytes_kernel(const std::uint8_t* bytes, std::int64_t count, std::uint8_t value,
                             unsigned long long* other) {
  add_to(other, count_other_bytes_body(bytes, count, value, this_worker()));
}

__device__ std::uint64_t now_ns() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void wait_kernel(std::uint64_t duration_ns) {
  const std::uint64_t begin = now_ns();
  while (now_ns() - begin < duration_ns) {
  }
}

}  // namespace

cudaError_t launch_copy(std::byte* dst, const std::byte* source, Extent bytes,
                        cudaStream_t stream) {
  const std::int64_t packs = bytes.elements / kPackBytes + 1;
  copy_kernel<<<blocks_for(packs, bytes.max_blocks), kThreads, 0, stream>>>(dst, source,
                                                                            bytes.elements);
  return cudaGetLastError();
}

cudaError_t launch_fill(std::size_t element_bytes, std::byte* out, std::int64_t first,
                        const std::byte* table, Extent extent, cudaStream_t stream) {
  return with_word(element_bytes, [&](auto word) {
    using T = decltype(word);
    fill_kernel<T><<<blocks_for(extent.elements, extent.max_blocks), kThreads, 0, stream>>>(
        reinterpret_cast<T*>(out), first, extent.elements, reinterpret_cast<const T*>(table));
    return cudaGetLastError();
  });
}

cudaError_t launch_count_different(std::size_t element_bytes, const std::byte* got,
                                   std::int64_t first, const std::byte* table,
                                   unsigned long long* count, Extent extent, cudaStream_t stream) {
  return with_word(element_bytes, [&](auto word) {
    using T = decltype(word);
    count_different_kernel<T>
        <<<blocks_for(extent.elements, extent.max_blocks), kThreads, 0, stream>>>(
            reinterpret_cast<const T*>(got), first, extent.elements,
            reinterpret_cast<const T*>(table), count);
    return cudaGetLastError();
  });
}

cudaError_t launch_count_other_bytes(const std::byte* bytes, std::byte value,
                                     unsigned long long* count, Extent extent,
                                     cudaStream_t stream) {
  count_other_bytes_kernel<<<blocks_for(extent.elements, extent.max_blocks), kThreads, 0, stream>>>(
      reinterpret_cast<const std::uint8_t*>(bytes), extent.elements,
      static_cast<std::uint8_t>(value), count);
  return cudaGetLastError();
}

cudaError_t launch_wait(double duration_s, cudaStream_t stream) {
  wait_kernel<<<1, 1, 0, stream>>>(static_cast<std::uint64_t>(duration_s * 1e9));
  return cudaGetLastError();
}

cudaError_t find_kernels() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, copy_kernel);
}

}  // namespace espalier::cuda
