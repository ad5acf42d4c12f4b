// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace espalier::fake_cuda {

/// Bytes that a kernel reads or writes.
struct Touched {
  const std::byte* begin = nullptr;
  std::int64_t bytes = 0;
};

/// Puts a kernel into a stream: `work` is done when its turn comes, if all that it touches is
/// memory its device can reach. Returns what CUDA would say about the launch.
cudaError_t launch(CUstream_st* stream, std::vector<Touched> touched, std::function<void()> work);

/// Puts a kernel into a stream that ends when `attempt`, which is called from its turn on, returns
/// true.
void launch_until(CUstream_st* stream, std::function<bool()> attempt);

}  // namespace espalier::fake_cuda
