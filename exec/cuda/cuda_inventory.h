// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "run/inventory.h"

namespace espalier {

/// The GPUs named, as CUDA numbers them, or all there are: their sockets, PCIe switches (as Linux
/// shows them), NVLinks (from NVML, which is loaded when needed; without it none are found) and
/// which GPUs can map each other's memory. Throws Error{unsupported} with `cuda_unavailable`, and
/// Error{usage} naming the GPUs that there are not.
Inventory cuda_inventory(const std::vector<int>& devices);

/// How many GPUs there are. Throws Error{unsupported} with `cuda_unavailable`.
int cuda_gpus();

}  // namespace espalier
