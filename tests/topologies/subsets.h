// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "topologies/load.h"
#include "topologies/placement.h"
#include "topologies/route.h"

namespace espalier {

/// Subsets of 2 to 8 GPUs of a machine of eight that the GPU fabric connects.
inline std::vector<std::vector<int>> connected_subsets(const std::string& spec) {
  const Topology topology = load_topology(spec);
  const Router router(topology, topology.profile("ideal"), LinkScope::fabric);
  std::vector<std::vector<int>> subsets;
  for (unsigned mask = 1; mask < 256; ++mask) {
    std::vector<int> gpus;
    for (int gpu = 0; gpu < 8; ++gpu) {
      if ((mask >> gpu & 1U) != 0) gpus.push_back(gpu);
    }
    if (gpus.size() < 2) continue;
    if (unreachable_pair(router, place_ranks(router, gpus))) continue;
    subsets.push_back(gpus);
  }
  return subsets;
}

}  // namespace espalier
