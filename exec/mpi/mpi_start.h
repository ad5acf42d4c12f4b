// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "exec/mpi_cuda/gpu_choice.h"
#include "run/backend.h"
#include "run/inventory.h"

namespace espalier {

/// The back end on the processes that mpirun or torchrun has started, with buffers in the memory of
/// a GPU each, or of their computers where none is chosen. The first call of this or of
/// connect_mpi, mpi_processes, mpi_tells and mpi_inventory connects them, in which all processes
/// have to take part. Each throws Error{unsupported} where this process was started on its own, or
/// by mpirun where this espalier was built without MPI or with another one; and where the processes
/// do not find each other, what `meet_at` throws.
std::unique_ptr<Backend> make_mpi_backend(const std::optional<GpuChoice>& gpus);
/// Connects them, if they are not yet: one that is stopped or does not come meanwhile, and from
/// then on one that does not get further, is an error after so many seconds, by default those of
/// RunOptions.
void connect_mpi(double timeout_s);
/// Whether the launcher's environment says that this is another process than the first, known
/// before they are connected.
bool is_told_by_rank_0();
/// For a process that `is_told_by_rank_0`, before it tells an error of its own: whether rank 0 ends
/// with an error, too, as it does where all were asked the same. Waits three seconds for it; a
/// launcher may end the process meanwhile.
bool rank_0_fails_too();
/// How many processes there are.
int mpi_processes();
/// Whether this is the process that tells what came out: rank 0.
bool mpi_tells();
/// What there is to probe: as `inventory_of_processes` or, on GPUs, `gpu_inventory`, which say what
/// they throw.
Inventory mpi_inventory(const std::optional<GpuChoice>& gpus);

/// Before the process ends with this exit code: waits for the others, and ends MPI. After an error
/// that others need not have, it ends the process. Does nothing where they were not connected.
void leave_mpi(int exit_code);

}  // namespace espalier
