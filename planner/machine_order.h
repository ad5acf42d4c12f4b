// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "planner/forest.h"

namespace espalier {

/// A placement's ranks and relays renumbered in the order of the machine's nodes. Planners make
/// choices by number where several are as good, so that a plan made for `placement` depends on the
/// set of GPUs alone, not on the order in which they were listed.
struct MachineOrder {
  Placement placement;
  std::vector<int> given_site;  ///< by site of `placement` (see planner/forest.h): as it was given

  /// The rank of `placement` that was given as this one.
  int rank(int given) const;
};

MachineOrder machine_order(const Placement& given);

/// A forest planned for `order.placement` becomes one for the placement it was made from. The order
/// of trees and edges stays.
void rename_sites(Forest& forest, const MachineOrder& order);

}  // namespace espalier
