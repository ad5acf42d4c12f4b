// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/console.h"
#include "topologies/topology.h"

namespace espalier {

/// Nodes, links, the GPUs' adjacency matrix in the manner of `nvidia-smi topo -m`, what the
/// profiles make of the links, and the sources of the figures.
void show_topology(const Console& console, const Topology& topology);

/// A Graphviz graph: `espalier show dgx1-v100 --dot | dot -Tsvg`.
std::string topology_dot(const Topology& topology);

}  // namespace espalier
