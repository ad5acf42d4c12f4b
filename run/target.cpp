// SPDX-License-Identifier: Apache-2.0
#include "run/target.h"

#include "core/check.h"

namespace espalier {

NodeId node_of(const Program& program, const Placement& placement, PlaceId place) {
  const PlaceNumber named = place_number(program, place);
  const auto number = static_cast<std::size_t>(named.number);
  switch (named.kind) {
    case PlaceKind::rank:
      return placement.ranks[number];
    case PlaceKind::host:
      return placement.hosts[number];
    case PlaceKind::relay:
      return placement.relays[number];
  }
  CHECK(false);
}

std::vector<NodeId> nodes_of_places(const Program& program, const Placement& placement) {
  std::vector<NodeId> nodes;
  nodes.reserve(static_cast<std::size_t>(program.places()));
  for (PlaceId place = 0; place < program.places(); ++place) {
    nodes.push_back(node_of(program, placement, place));
  }
  return nodes;
}

}  // namespace espalier
