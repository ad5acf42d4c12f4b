// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "topologies/topology.h"

// Private to the room.

namespace espalier {

/// What a profile makes of a machine's links, by link.
struct LinkRates {
  std::vector<double> gbps;  ///< of data, in one direction; in both where they share the bandwidth
  std::vector<const LinkProfile*> rows;  ///< the profile's, for their kinds; null: it has none
};
/// The rows are the profile's own.
LinkRates link_rates(const Topology& topology, const Profile& profile);

}  // namespace espalier
