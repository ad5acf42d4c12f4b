// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "formats/measured_tables.h"
#include "topologies/topology.h"

namespace espalier {

/// Why the GPUs that a table lists cannot be those of a machine: "rank 0 ran on NVIDIA H100 80GB
/// HBM3, and dgx-a100 has a100-sxm4". Empty where they can, and where either of them is not known.
std::string different_gpus(const MeasuredTable& table, const Topology& machine);

}  // namespace espalier
