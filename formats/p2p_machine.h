// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/p2p_matrices.h"
#include "topologies/topology.h"

namespace espalier {

/// Puts measured rates on the links of a machine with as many GPUs, as `espalier probe` does
/// (docs/probing.md): on the link of a pair; on the link of each GPU to a switch, the best rate of
/// that GPU; on links of the host, where one of the route limits it. What cannot be told, or does
/// not fit, becomes a note. Private to the room.
void apply_rates(const P2pRates& rates, Topology& machine);

/// A machine that the rates alone make likely, with a note for each guess.
Topology guess_machine(const P2pRates& rates, const std::string& name);

}  // namespace espalier
