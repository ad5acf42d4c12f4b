// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "topologies/topology.h"

namespace espalier {

/// What differs between a machine and the same one as a file has it, in sentences such as "GPU to
/// its CPU over PCIe (gpu0 and 7 more): 10.6 GB/s becomes 12.0". GB/s are those of profile
/// `kernel`; rates that differ by less than 1 % are equal. GPUs, CPUs and network ports are
/// compared in their order. Private to the room.
std::vector<std::string> machine_differences(const Topology& machine, const Topology& written);

}  // namespace espalier
