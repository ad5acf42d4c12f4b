// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/forest.h"

namespace espalier {

/// What crosses one direction of a link for every message; both directions where they share the
/// bandwidth, all links of a medium together.
struct LinkLoad {
  Hop hop;                 ///< forward where directions share; of a medium, its first link
  std::int64_t units = 0;  ///< of the message; 0: idle
  double capacity_gbps = 0;
};

/// Adds up what the edges of trees put on links.
class LinkLoads {
 public:
  /// Keeps references to both.
  LinkLoads(const Router& router, const Placement& placement)
      : router_(router), placement_(placement) {}

  /// Counts an edge with so many units, from child to parent when `up`. False, and nothing counted,
  /// where the machine has no such route.
  bool add(const TreeEdge& edge, bool up, std::int64_t units);
  /// The ways data goes in a forest for the collective.
  bool add(const TreeEdge& edge, Collective collective, std::int64_t units) {
    return (!goes_up(collective) || add(edge, true, units)) &&
           (!goes_down(collective) || add(edge, false, units));
  }
  /// Those with a load, by link.
  std::vector<LinkLoad> loaded() const;

 private:
  const Router& router_;
  const Placement& placement_;
  std::map<std::pair<LinkId, bool>, std::int64_t> units_;  ///< by link and direction
};

/// What a forest puts on every link that its ranks and relays might use: those in scope on their
/// hosts and between these, other GPUs' links left out. By link, forward first, idle ones included.
/// \pre check_forest found nothing
std::vector<LinkLoad> link_loads(const Forest& forest, const Router& router,
                                 const Placement& placement);

/// The part of its capacity that a load takes when messages move at the forest's rate; 0 when that
/// is unlimited.
double share_used(const LinkLoad& load, const Forest& forest);

}  // namespace espalier
