// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "topologies/topology.h"

namespace espalier {

/// As `load_topology`, but a path may also lead to a file of another program, known by its content:
/// "./nccl_topo.xml", "./nccl_topo.xml:as=dgx1-v100" (a machine that fills in what the file leaves
/// out), with changes as for any machine. Throws the same errors.
Topology open_machine(const std::string& spec);

/// Streaming multiprocessors or compute units of a model: thread blocks that run at once, where
/// each takes all that one has. 0: not known.
int multiprocessors_of(std::string_view model);

}  // namespace espalier
