// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/time_limit.h"
#include "planner/link_loads.h"
#include "scenarios/study.h"

namespace espalier {

/// A plan for a query, and how good it is.
struct Planned {
  Query query;
  const Machine* machine = nullptr;  ///< the study's
  Forest forest;
  std::vector<LinkLoad> loads;             ///< see link_loads
  LinkScope bound_links = LinkScope::all;  ///< the links the bound counts: those that are used
  Bound bound;  ///< of schedules in which only GPUs (and CPUs) add up and copy, as in plans
  /// Where switches can as well, and that allows more.
  std::optional<Bound> bound_in_switches = {};
  double fraction = 1;                     ///< rate / bound; 1 where nothing has to be sent
  std::optional<GrantedTime> budget = {};  ///< of plan and bound, where their time was limited
  Program program;                         ///< uncut

  int sites() const {
    return machine->ranks() + static_cast<int>(machine->placement.relays.size());
  }
  const std::string& gpu_name(int site) const {
    const NodeId node = site_node(machine->placement, site);
    return machine->topology->node(node).name;
  }
};

/// The algorithms that plan trees for the collective, by name.
std::vector<std::string> planning_algorithms(Collective collective);

/// Plans for the query, whose size does not matter. Throws what `Study::machine` throws, and
/// Error{unsupported} when the algorithm is not possible here, with what is. \pre the algorithm
/// plans for the collective.
Planned plan_query(Study& study, const Query& query);

/// A plan whose query, forest and bounds are known, as a record has them: fills in the rest. Throws
/// what `Study::machine` throws.
void complete_plan(Study& study, Planned& planned);

}  // namespace espalier
