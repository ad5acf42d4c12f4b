// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "topologies/topology.h"

namespace espalier {

/// How two GPUs of one host are connected, in the terms of `nvidia-smi topo -m`: "X", "NV2", "XG1"
/// (xGMI), "L1" (another GPU fabric), "PIX", "PXB", "PHB", "NODE", "SYS", "NET", or "-" when not at
/// all.
std::string adjacency(const Topology& topology, NodeId a, NodeId b);

}  // namespace espalier
