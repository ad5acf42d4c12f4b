// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "topologies/topology.h"

namespace espalier {

/// Known differences between the machine of a prediction and the one that is measured, in
/// sentences: the topology was not probed, describes GPUs while threads are measured, or
/// share a device where those measured do not, or the other way round. `devices`: of each rank that
/// is measured; empty: nobody said.
std::vector<std::string> doubts_about(const Topology& machine, bool measures_threads,
                                      const std::vector<int>& devices);

}  // namespace espalier
