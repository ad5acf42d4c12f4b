// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "exec/cuda/wiring.h"
#include "run/inventory.h"

namespace espalier {

/// The GPUs named, as CUDA numbers them, or all there are: their sockets, PCIe switches (as Linux
/// shows them), NVLinks (from NVML, which is loaded when needed; without it none are found) and
/// which GPUs can map each other's memory. Throws Error{unsupported} with `cuda_unavailable`, and
/// Error{usage} naming the GPUs that there are not.
Inventory cuda_inventory(const std::vector<int>& devices);

/// A GPU as the system describes it.
struct DescribedGpu {
  ProbedDevice device;
  std::string bus_id;
  std::vector<NvlinkEnd> nvlinks;
};

/// \pre there is a GPU of that number
DescribedGpu describe_gpu(int number);

/// How many GPUs there are. Throws Error{unsupported} with `cuda_unavailable`.
int cuda_gpus();

}  // namespace espalier
