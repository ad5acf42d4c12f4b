// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/program.h"
#include "topologies/placement.h"
#include "topologies/rotation.h"

namespace espalier {

/// The machine a program runs on. `router` may be null for back ends that do not look at it (host).
struct Target {
  const Router* router = nullptr;
  Placement placement;
  /// For folded programs: how the machine repeats itself, with as many groups. Null: it does not,
  /// and the ops of all groups are meant (Backend::runs_all_groups).
  const Rotation* rotation = nullptr;
  /// The same ones, not such that are alike.
  bool operator==(const Target&) const = default;
};

/// How many groups of a folded program's ranks have their ops run, of which the program holds those
/// of the first: all, unless the machine repeats itself. `rotation`: as in Target.
inline int groups_run(const Program& program, const Rotation* rotation) {
  return rotation == nullptr ? program.fold.groups : 1;
}

/// The node that holds a place. \pre the placement has as many ranks, host memories and relays as
/// the program
NodeId node_of(const Program& program, const Placement& placement, PlaceId place);

/// The nodes of all places, by place. \pre as of node_of
std::vector<NodeId> nodes_of_places(const Program& program, const Placement& placement);

}  // namespace espalier
