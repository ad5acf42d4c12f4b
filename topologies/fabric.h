// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topologies/topology.h"

namespace espalier {

/// Whether the GPU fabric of some host goes on in another: where it does not, no pair of hosts need
/// be asked for.
bool may_join_hosts(const Topology& topology);

}  // namespace espalier
