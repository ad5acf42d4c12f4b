// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exec/mpi/processes.h"
#include "exec/mpi_cuda/gpu_choice.h"
#include "run/target.h"

namespace espalier::cuda {

/// The number of this process's GPU, as CUDA has it. Throws Error{unsupported} where there is none
/// at all, Error{usage} where there is none of that number.
int gpu_of_process(const Processes& processes, const GpuChoice& choice, const Target& target);

}  // namespace espalier::cuda
