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

}  // namespace espalier
