// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "probe/survey.h"
#include "topologies/topology.h"

namespace espalier {

/// What both ways of fitting a machine (fit_machine.h) do.

/// A profile, and the copies whose figures it gets.
struct FittedProfile {
  const char* name;
  const CopyFigures* copies;
};
/// `kernel` and `copy_engine`. Where there are no copy engines, both are about kernels.
std::vector<FittedProfile> fitted_profiles(const Survey& survey);

/// Copies by copy engines, or by kernels where there are none.
const CopyFigures& best_copies(const Survey& survey);

/// The fitted profile in the machine, with what calls and ops within a memory cost.
Profile& begin_profile(Topology& machine, const FittedProfile& fitted, const Survey& survey);

NodeId add_node(Topology& machine, std::string name, NodeKind kind);

/// Adds a link of `count` times `gbps` and returns it.
Link& add_link(Topology& machine, NodeId a, NodeId b, const std::string& kind, LinkClass link_class,
               double gbps, int count = 1);

/// Nodes, links and profiles of GPUs that have memories of their own.
void fit_gpus(const Survey& survey, Topology& machine);

}  // namespace espalier
