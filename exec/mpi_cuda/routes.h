// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "exec/cuda/gpus.h"
#include "exec/mpi/processes.h"
#include "exec/mpi_cuda/gpu_memory.h"
#include "exec/mpi_cuda/gpu_steps.h"
#include "exec/mpi_cuda/shared_memory.h"

namespace espalier::cuda {

/// What processes settle before their GPUs exchange messages: but for `place_of`, all call these
/// together.

/// A process's GPU as the others see it.
struct GpuPlace {
  std::string text;            ///< "node7, socket 1, GPU 3 (NVIDIA H100)"
  std::string computer;        ///< id_of_computer()
  std::string bus_id;          ///< of the GPU, unique on its computer
  int number = 0;              ///< as that process sees it
  std::string nccl_host = {};  ///< NCCL_HOSTID, by which NCCL tells computers apart where it is set
};

/// That of this process.
GpuPlace place_of(const Processes& processes, const Gpu& gpu, std::string nccl_host);

/// Those of all, by process.
std::vector<GpuPlace> gather_places(const Processes& processes, const GpuPlace& mine);

/// Throws in all processes Error{usage} where two of a computer have the same GPU although
/// `choice` names none, or although NCCL is to send messages.
void require_gpus_for(const Processes& processes, const GpuChoice& choice,
                      const std::vector<GpuPlace>& places);

/// How messages go, and what is to be said about it.
struct SettledRoutes {
  Routes routes;
  std::vector<std::string> notes;
};

/// Lets processes of a host map each other's `memory` where `may_map`, and chooses a route for each
/// pair and direction, the same at both ends. Throws in all processes Error{unsupported} when
/// GpuTransport::mpi is wanted of a library that does not take GPU memory.
/// NCCL's routes are settled by its link.
SettledRoutes settle_routes(const Processes& processes, GpuTransport transport, bool may_map,
                            SharedMemory& memory);

}  // namespace espalier::cuda
