// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "run/backend.h"

namespace espalier {

/// A figure of a GPU, and the one it has to reach.
struct GpuRate {
  std::string what;
  double value = 0;
  double wanted = 0;
  std::string unit;  ///< "%" of what a copy by the GPU's copy engine moves, "us per op", or "GB/s"
  bool at_most = false;  ///< smaller is better; otherwise larger is
  bool reached() const { return at_most ? value <= wanted : value >= wanted; }
};

/// Measures what one GPU's executor reaches, on a GPU that is kept busy until its cudaMemcpy is
/// steady; every figure against the faster of two device-to-device cudaMemcpys of the same run (the
/// first and the last of the list, wanting nothing): copy and combine kernels of 2, 4 and 8
/// operands of float and half, on buffers of `bytes`; ops of a chain in a graph; and allreduces of
/// `message_bytes` by eight ranks. Bytes are counted as moved: each operand read, the result
/// written. The back end has at least eight ranks on one GPU. `progress` is told what is next.
std::vector<GpuRate> gpu_rates(Backend& backend, std::int64_t bytes, std::int64_t message_bytes,
                               const std::function<void(const std::string&)>& progress);

/// As a table in Markdown, for docs/validation.md.
std::string gpu_rates_table(const std::vector<GpuRate>& rates);

}  // namespace espalier
