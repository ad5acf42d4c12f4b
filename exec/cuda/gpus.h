// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exec/lanes/stream_plan.h"
#include "topologies/topology.h"

namespace espalier::cuda {

/// Why CUDA can't be used on this computer, in a sentence: no driver, one that is too old, or no
/// GPU. Nothing where it can.
std::optional<std::string> cuda_problem();

/// As CUDA numbers them. \pre cuda_problem() is nothing.
int gpu_count();

/// "NVIDIA H200", as CUDA calls the GPU of that number.
std::string gpu_model(int gpu);

/// Its PCI address as Linux writes it: "0000:3d:00.0".
std::string bus_id_of(int gpu);

struct Gpu {
  int number = 0;  ///< as CUDA has it
  std::string name;
  int processors = 1;  ///< streaming multiprocessors
};

/// The GPUs that the places of a program are on, each once.
struct Gpus {
  std::vector<Gpu> all;  ///< by the index that `set` uses
  DeviceSet set;
};

/// Opens GPU `numbers[p]` for each place p that is not DeviceSet::kHost. Throws Error{unsupported}
/// when this build has no kernels for one of them. \pre all numbers are below gpu_count().
Gpus open_gpus(const std::vector<int>& numbers);

}  // namespace espalier::cuda
