// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "run/inventory.h"

namespace espalier {

/// The GPUs named, as CUDA numbers them, or all there are: their sockets, PCIe switches (as Linux
/// shows them), NVLinks (as NVML tells, which is looked for when it is needed; without it there are
/// none) and who can map whose memory. Throws Error{unsupported} with `cuda_unavailable`, and
/// Error{usage} naming the GPUs that there are not.
Inventory cuda_inventory(const std::vector<int>& devices);

/// How many GPUs there are. Throws Error{unsupported} with `cuda_unavailable`.
int cuda_gpus();

}  // namespace espalier
