// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/host_nodes.h"

#include <algorithm>

namespace espalier::cuda {

std::vector<HostNode> host_nodes(const Program& program, const Target& target,
                                 const std::vector<NumaNode>& here) {
  std::vector<HostNode> all(static_cast<std::size_t>(program.hosts));
  if (target.router == nullptr) return all;
  // What probes run uses host memories that are nowhere in a machine.
  const std::vector<NodeId>& cpus = target.placement.hosts;
  for (std::size_t host = 0; host < std::min(all.size(), cpus.size()); ++host) {
    const Node& cpu = target.router->topology().node(cpus[host]);
    if (cpu.numa < 0) continue;
    all[host].cpu = cpu.name;
    all[host].node.number = cpu.numa;
    const auto found = std::ranges::find(here, cpu.numa, &NumaNode::number);
    if (found != here.end()) all[host].node = *found;
  }
  return all;
}

}  // namespace espalier::cuda
