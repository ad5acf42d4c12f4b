// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/rings.h"
#include "topologies/placement.h"

namespace espalier {

/// What a set of rings runs over, best first. `direct`: GPU fabric links between neighbours.
/// `relayed`: the same, some hops passing through a third rank. `switched`: fabric switches.
/// `routed`: whatever routes there are (PCIe, host memory). `network`: several islands, each with
/// rings of its own kind, joined over the network.
enum class RingKind : std::uint8_t { direct, relayed, switched, routed, network };

struct RingSet {
  RingKind kind = RingKind::direct;
  std::vector<Ring> rings;
  /// Each ring is meant to be used in both directions, each with half of its data.
  bool both_ways = false;
  /// Why there is no ring at all (no route from one rank to another); empty otherwise.
  std::string why_not;
};

struct RingOptions {
  /// Allow relayed rings if there is no direct one.
  bool relays = true;
};

/// Maximum number of ranks for which rings over links are searched exhaustively.
inline constexpr int kExactRingRanks = 8;
/// Maximum number for which they are searched at all; above it, only the order of the ranks is
/// tried.
inline constexpr int kMaxRingRanks = 32;

/// The rings that a ring library uses over these ranks. On one machine: the maximum number of
/// edge-disjoint direct rings (a bundle of links carries as many as it has links); if there are
/// none, relayed ones, used in both directions or else in one; if there are none, one ring along
/// routes, in the order of ranks that minimises the load of the busiest link (exact up to
/// kExactRingRanks; above, the better of rank order and of always going to the nearest GPU next).
/// Behind fabric switches one ring in rank order fills every link. Several machines: each
/// contributes its own rings, cut open where data enters and leaves it; there are as many rings as
/// the machine with the most rings, or network ports in use, has. Needs at most a few milliseconds
/// on a machine of eight GPUs. \pre two ranks or more
RingSet find_rings(const Router& router, const Placement& placement,
                   const RingOptions& options = {});

}  // namespace espalier
