// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "planner/forest.h"

namespace espalier {

/// The switches and other nodes that the router's way between two nodes passes. \pre there is one
std::vector<NodeId> nodes_between(const Router& router, NodeId from, NodeId to);

/// On several hosts a plan may find it best that data between two GPUs of one host leaves it
/// through a NIC and comes back through another. No runtime does that by itself: where the links
/// allow it (LinkScope::all), such transfers take the router's way instead, at the rate which that
/// leaves.
void keep_inside_hosts(Forest& forest, const Router& router, const Placement& placement);

}  // namespace espalier
