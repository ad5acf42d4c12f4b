// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exec/mpi/processes.h"
#include "exec/mpi_cuda/gpu_choice.h"
#include "run/inventory.h"

namespace espalier {

/// What processes with their buffers in GPU memory have to probe: as `inventory_of_gpu_processes`,
/// with the NVLinks of the first host that messages take. All processes call it together. Throws
/// in all of them Error where one has no such GPU, where two get the same one although `choice`
/// names none, and what `inventory_of_gpu_processes` throws.
Inventory gpu_inventory(const Processes& processes, const GpuChoice& choice);

}  // namespace espalier
