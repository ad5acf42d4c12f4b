// SPDX-License-Identifier: Apache-2.0
// The launches of exec/cuda/kernels.h, on the CPU.
#include "tests/exec/fake_kernels.h"

#include <chrono>
#include <thread>

#include "exec/cuda/kernels.h"
#include "exec/cuda/pattern_body.h"
#include "exec/cuda/with_word.h"
#include "exec/host/combine_kernels.h"
#include "ir/data.h"

namespace espalier::cuda {
namespace {

using fake_cuda::launch;
using fake_cuda::Touched;

}  // namespace

cudaError_t launch_fold(DataType type, ReduceOp op, std::byte* dst, const SourceList& list,
                        Extent extent, cudaStream_t stream) {
  const std::int64_t bytes = extent.elements * static_cast<std::int64_t>(size_of(type));
  const std::byte* const* const from = list.table != nullptr ? list.table : list.addresses;
  const std::vector<const std::byte*> sources(from, from + list.count);
  std::vector<Touched> touched{{dst, bytes}};
  for (const std::byte* source : sources) touched.push_back({source, bytes});
  return launch(stream, touched, [=] { combine(type, op, dst, sources, extent.elements); });
}

cudaError_t launch_copy(std::byte* dst, const std::byte* source, Extent bytes,
                        cudaStream_t stream) {
  return launch(stream, {{dst, bytes.elements}, {source, bytes.elements}}, [=] {
    fold_body<Native<std::uint8_t>, Sum, CopyInFlight>(dst, &source, 1, bytes.elements, {});
  });
}

cudaError_t launch_fill(std::size_t element_bytes, std::byte* out, std::int64_t first,
                        const std::byte* table, Extent extent, cudaStream_t stream) {
  return with_word(element_bytes, [&](auto word) {
    using T = decltype(word);
    const auto size = static_cast<std::int64_t>(sizeof(T));
    return launch(stream, {{out, extent.elements * size}, {table, kPatternPeriod * size}}, [=] {
      fill_body(reinterpret_cast<T*>(out), first, extent.elements,
                reinterpret_cast<const T*>(table), {});
    });
  });
}

cudaError_t launch_count_different(std::size_t element_bytes, const std::byte* got,
                                   std::int64_t first, const std::byte* table,
                                   unsigned long long* count, Extent extent, cudaStream_t stream) {
  return with_word(element_bytes, [&](auto word) {
    using T = decltype(word);
    const auto size = static_cast<std::int64_t>(sizeof(T));
    const std::vector<Touched> touched{{got, extent.elements * size},
                                       {table, kPatternPeriod * size},
                                       {reinterpret_cast<std::byte*>(count), sizeof *count}};
    return launch(stream, touched, [=] {
      *count += static_cast<unsigned long long>(
          count_different_body(reinterpret_cast<const T*>(got), first, extent.elements,
                               reinterpret_cast<const T*>(table), {}));
    });
  });
}

cudaError_t launch_count_other_bytes(const std::byte* bytes, std::byte value,
                                     unsigned long long* count, Extent extent,
                                     cudaStream_t stream) {
  return launch(stream, {{bytes, extent.elements}}, [=] {
    *count += static_cast<unsigned long long>(
        count_other_bytes_body(reinterpret_cast<const std::uint8_t*>(bytes), extent.elements,
                               static_cast<std::uint8_t>(value), {}));
  });
}

cudaError_t launch_wait(double duration_s, cudaStream_t stream) {
  return launch(stream, {},
                [=] { std::this_thread::sleep_for(std::chrono::duration<double>(duration_s)); });
}

cudaError_t find_kernels() { return cudaSuccess; }

}  // namespace espalier::cuda
