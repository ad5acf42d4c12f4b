// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "probe/survey.h"
#include "run/inventory.h"
#include "topologies/topology.h"

namespace espalier {

/// A rate of all ranks of a host together, in GB/s: what a probed machine's topology says of it,
/// and what is reached now.
struct CheckedFigure {
  std::string name;        ///< "sums"
  std::int64_t bytes = 0;  ///< that each rank touches meanwhile
  double probed_gbps = 0;
  double now_gbps = 0;

  /// By which factor the two differ, at least 1.
  double factor() const;
  /// Whether they differ by more than such measurements do while a machine stays as it is.
  bool has_changed() const;
};

/// Whether the topology has such figures of that computer: it was probed, with as many ranks.
/// GPUs have none.
bool can_check(const Topology& machine, const Inventory& inventory);

/// Measures key figures of a probed computer once more: what its ranks add up and, where they are
/// processes, get from each other, with few bytes and with more at work. A figure that differs
/// from the topology's is measured twice, and the closer one counts, so that a short disturbance is
/// no change. \pre can_check
std::vector<CheckedFigure> check_figures(const Topology& machine, const Inventory& inventory,
                                         const Meter& meter);

/// Does so whenever it is called.
using FigureCheck = std::function<std::vector<CheckedFigure>()>;

}  // namespace espalier
