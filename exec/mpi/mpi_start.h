// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "exec/mpi_cuda/gpu_choice.h"
#include "run/backend.h"
#include "run/inventory.h"

namespace espalier {

/// The back end on the processes that mpirun has started, with buffers in the memory of a GPU each,
/// or of their computers where none is chosen. The first call of this or the
/// next three starts MPI, in which all processes have to take part. Each throws Error{unsupported}
/// where this espalier was built without MPI, was started without a launcher of MPI, or by that of
/// another MPI than it was built with.
std::unique_ptr<Backend> make_mpi_backend(const std::optional<GpuChoice>& gpus);
/// Whether the launcher's environment says that this is another process than the first, known
/// before MPI is started.
bool is_told_by_rank_0();
/// How many processes there are.
int mpi_processes();
/// Whether this is the process that tells what came out: rank 0.
bool mpi_tells();
/// What there is to probe: this computer, with as many ranks.
Inventory mpi_inventory(int ranks);

/// Before the process ends with this exit code: waits for the others, and ends MPI. After an error
/// that others need not have, it ends the process. Does nothing where MPI was not started.
void leave_mpi(int exit_code);

}  // namespace espalier
