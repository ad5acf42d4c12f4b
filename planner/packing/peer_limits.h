// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "planner/forest.h"
#include "planner/packing/packing_problem.h"

// A GPU can map the memory of a limited number of others
// of its host (Node::peer_limit). Private to the room.

namespace espalier {

/// Which sites may exchange data directly, both ways: row by row.
using PeerChoice = std::vector<std::vector<bool>>;

/// Peers for every site so that none has more than it may map; pairs that need no mapping, on
/// different hosts or joined through a CPU's memory, are all left. Every group of nearest sites
/// (the GPUs of a card, say) meets every other group if that goes; then near sites are joined
/// first, as what they exchange crosses the fewest links. All sites are connected, over others or
/// directly. Nothing where limits leave them in parts.
std::optional<PeerChoice> choose_peers(const Router& router, const Placement& placement);

/// The problem without edges between sites that are no peers. Nodes between sites become several
/// vertices that share resources, one for every site whose data may pass.
PackingProblem among_peers(const PackingProblem& problem, const PeerChoice& peers);

/// Whether no GPU exchanges data with more others than it may map.
bool keeps_peer_limits(const Forest& forest, const Router& router, const Placement& placement);

/// The forest if it keeps the limits. Otherwise what `replan` makes of a choice of peers, which
/// notes the rate given up: Forest::unlimited_gbps.
Forest keep_peer_limits(Forest forest, const Router& router, const Placement& placement,
                        const std::function<Forest(const PeerChoice&)>& replan);

}  // namespace espalier
