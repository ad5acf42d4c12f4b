// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topologies/placement.h"

// Private to the room.

namespace espalier {

/// Whether plans for these GPUs, and what bounds them, may use the network. Inside one host no
/// runtime sends data out through a NIC and back in by itself; the network is used there only
/// between nodes that nothing else joins, or where it is asked for (LinkScope::detours).
bool may_use_network(const Router& router, const Placement& placement);

}  // namespace espalier
