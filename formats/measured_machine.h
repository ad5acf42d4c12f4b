// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "formats/measured_tables.h"
#include "topologies/topology.h"

namespace espalier {

/// Why the GPUs that a table lists cannot be those of a machine: "rank 0 ran on NVIDIA H100 80GB
/// HBM3, and dgx-a100 has a100-sxm4". Empty where they can, and where either of them is not known.
std::string different_gpus(const MeasuredTable& table, const Topology& machine);

/// What to tell of GPUs that a table lists and nobody knows, of which the machine's may be others:
/// "rank 0 ran on 'NVIDIA GH200 120GB', of which nothing is known: taken for h100-sxm5". Empty
/// where there are none.
std::string unknown_gpus(const MeasuredTable& table, const Topology& machine);

}  // namespace espalier
