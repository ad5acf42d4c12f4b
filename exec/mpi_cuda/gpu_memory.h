// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "exec/mpi/process_memory.h"
#include "exec/mpi_cuda/gpu_choice.h"

namespace espalier {

/// Memory of GPUs, one for each process, whose kernels combine, fill and check. Where this espalier
/// was built without CUDA or there is no GPU, whoever runs something on it is told so.
/// `processes` must outlive it.
std::unique_ptr<ProcessMemory> make_gpu_memory(const Processes& processes, GpuChoice choice);

}  // namespace espalier
