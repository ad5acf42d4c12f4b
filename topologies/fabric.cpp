// SPDX-License-Identifier: Apache-2.0
#include "topologies/fabric.h"

#include <algorithm>

namespace espalier {

bool may_join_hosts(const Topology& topology) {
  return std::ranges::any_of(topology.links, [&](const Link& link) {
    return link.link_class == LinkClass::gpu_fabric &&
           topology.node(link.a).host != topology.node(link.b).host;
  });
}

}  // namespace espalier
