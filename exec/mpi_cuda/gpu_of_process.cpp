// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/gpu_of_process.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "core/error.h"
#include "exec/cuda/cuda_backend.h"
#include "exec/cuda/gpus.h"
#include "exec/cuda/numbering.h"

namespace espalier::cuda {
namespace {

/// Of this process, among those of its host.
int number_on_host(const Processes& processes, const GpuChoice& choice) {
  if (choice.local_rank) return *choice.local_rank;
  int number = 0;
  for (int rank = 0; rank < processes.transport.process(); ++rank) {
    if (processes.board.is_here(rank)) ++number;
  }
  return number;
}

}  // namespace

int gpu_of_process(const Processes& processes, const GpuChoice& choice, const Target& target) {
  if (const auto problem = cuda_unavailable()) throw Error(ErrorKind::unsupported, *problem);
  const auto mine = static_cast<std::size_t>(processes.transport.process());
  const int count = gpu_count();
  const std::string hint = "name the GPU of each rank with --devices";
  int gpu = number_on_host(processes, choice) % count;
  if (!choice.devices.empty()) {
    const std::size_t all = processes.places.size();
    if (choice.devices.size() != all) {
      throw Error(
          ErrorKind::usage,
          fmt::format("--devices names {} GPUs for {} processes", choice.devices.size(), all),
          hint);
    }
    gpu = choice.devices[mine];
  } else if (choice.as_placed && target.router != nullptr) {
    gpu = number_in_host(target.router->topology(), target.placement.ranks[mine]);
  }
  if (gpu >= 0 && gpu < count) return gpu;
  throw Error(ErrorKind::usage,
              fmt::format("there is no GPU {} on {}", gpu, processes.places[mine]),
              count == 1 ? "it has one, GPU 0" : fmt::format("it has GPUs 0 to {}", count - 1));
}

}  // namespace espalier::cuda
