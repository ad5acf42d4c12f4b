// SPDX-License-Identifier: Apache-2.0
// What one GPU's executor reaches, next to a cudaMemcpy of the same run, as a table in Markdown.
//
//   gpu_rates [DEVICE]     0 unless named
//
// Exit code 1 when a figure was missed, 3 when there is no GPU.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "bench/gpu_rates.h"
#include "core/error.h"
#include "core/units.h"
#include "exec/cuda/cuda_backend.h"

namespace {

using namespace espalier;

// More than the caches of any GPU; nine such buffers fit into 8 GiB.
constexpr std::int64_t kBytes = std::int64_t{512} << 20;
constexpr std::int64_t kMessage = std::int64_t{256} << 20;
constexpr int kRanks = 8;

int device_named(int argc, char** argv) {
  if (argc < 2) return 0;
  const auto numbers = parse_int_list(argv[1]);
  if (argc > 2 || !numbers || numbers->size() != 1) {
    throw Error(ErrorKind::usage, "usage: gpu_rates [DEVICE]");
  }
  return numbers->front();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CudaBackend backend(std::vector<int>(kRanks, device_named(argc, argv)));
    const auto rates = gpu_rates(backend, kBytes, kMessage,
                                 [](const std::string& what) { fmt::print(stderr, "{}\n", what); });
    fmt::print("{}", gpu_rates_table(rates));
    for (const GpuRate& rate : rates) {
      if (!rate.reached()) return 1;
    }
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return exit_code(error.kind());
  }
}
