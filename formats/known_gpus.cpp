// SPDX-License-Identifier: Apache-2.0
#include "formats/known_gpus.h"

#include <algorithm>

#include "topologies/load.h"

namespace espalier {

void fill_from_catalogue(Node& gpu) {
  if (gpu.model.empty()) return;
  for (const CatalogueEntry& entry : catalogue()) {
    const Topology machine = load_topology(entry.name);
    const auto same = std::ranges::find_if(machine.nodes, [&](const Node& node) {
      return node.kind == NodeKind::gpu && node.model.starts_with(gpu.model);
    });
    if (same == machine.nodes.end()) continue;
    gpu.model = same->model;
    gpu.memory_gbps = same->memory_gbps;
    gpu.reduce_gbps = same->reduce_gbps;
    gpu.peer_limit = same->peer_limit;
    return;
  }
}

}  // namespace espalier
