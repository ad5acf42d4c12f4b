// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

/// How messages get from the GPU of one process to that of another. `automatic` takes CUDA IPC
/// between processes of a computer, where CUDA lets them map each other's memory, otherwise MPI
/// itself where it reads GPUs, and otherwise pinned memory; `mpi` and `staged` take the second or
/// third way for all, and `nccl` has NCCL send and receive all of them.
enum class GpuTransport : std::uint8_t { automatic, mpi, staged, nccl };

/// "auto", "mpi", "staged", "nccl".
std::string_view to_string(GpuTransport transport);
const std::vector<GpuTransport>& all_gpu_transports();

/// Which GPU each process has, and how they exchange messages.
struct GpuChoice {
  std::vector<int> devices = {};  ///< by rank, as CUDA numbers them on its host; empty: not named
  /// Where they are not named: the GPU that has the number which the rank's has in its host of the
  /// target's machine. If false, that of the process's number on its host.
  bool as_placed = false;
  GpuTransport transport = GpuTransport::automatic;
  /// The process's number on its host, where the launcher says it: processes in containers of their
  /// own can't count.
  std::optional<int> local_rank = {};
  std::string nccl_host = {};  ///< NCCL_HOSTID, by which NCCL tells computers apart where it is set
};

}  // namespace espalier
