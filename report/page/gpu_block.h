// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "topologies/topology.h"

// Private to the room: where the GPUs of a host are drawn.

namespace espalier {

struct Point {
  double x = 0;
  double y = 0;
  bool operator==(const Point&) const = default;
};
using Points = std::map<NodeId, Point>;

/// The GPUs of a host, and the switches of their fabric, as its wiring suggests (see draw_machine).
/// `over_fabric`: the neighbours of every node over the GPU fabric.
Points place_gpus(const std::vector<NodeId>& gpus, const std::vector<NodeId>& switches,
                  const std::map<NodeId, std::vector<NodeId>>& over_fabric);

/// Whether no two of them stand in one column.
bool points_are_apart(const std::vector<NodeId>& nodes, const Points& points);

}  // namespace espalier
