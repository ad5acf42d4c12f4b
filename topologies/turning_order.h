// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "topologies/topology.h"

namespace espalier {

/// An order of GPUs of one host in which each may be moved to the next one, and the last to the
/// first, with the tree of PCIe switches and sockets they hang from: two that follow each other are
/// as far apart as they can be, so that all sockets take turns, in each of them its switches, and
/// so on (an odometer, whose fastest digit is the socket). Indices into `gpus`; their own order
/// where they hang from no such tree, or not in equal parts. Whether it is a symmetry of the whole
/// machine is for Rotation to check.
std::vector<int> turning_order(const Topology& topology, const std::vector<NodeId>& gpus);

}  // namespace espalier
