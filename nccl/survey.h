// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "nccl/graph.h"
#include "nccl/machine.h"

namespace espalier {

/// What NCCL finds out about a machine when a communicator is made, whatever is asked of it later:
/// found once for the same ranks, which takes seconds for thousands of GPUs. The same under all
/// protocols of a profile, as routes are.
class NcclSurvey {
 public:
  const NcclMachine& machine(const Router& router, const Placement& placement);
  const NcclGraph& graph(const Router& router, const Placement& placement, NcclVersion version,
                         bool pxn);

 private:
  /// Forgets what is known of others.
  void keep_to(const Router& router, const Placement& placement);

  const Topology* topology_ = nullptr;
  LinkScope links_ = LinkScope::all;
  std::vector<NodeId> ranks_;
  std::optional<NcclMachine> machine_;
  std::map<std::pair<NcclVersion, bool>, NcclGraph> graphs_;
};

}  // namespace espalier
