// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "nccl/graph.h"
#include "nccl/machine.h"

namespace espalier {

struct NcclAnswer;

/// What NCCL finds out about a machine when a communicator is made, whatever is asked of it later:
/// found once for the same ranks, which takes seconds for thousands of GPUs. The same under all
/// profiles under which routes take the same ways.
class NcclSurvey {
 public:
  const NcclMachine& machine(const Router& router, const Placement& placement);
  const NcclGraph& graph(const Router& router, const Placement& placement, NcclVersion version,
                         bool pxn);

  /// What was asked last, and the answer; null: nothing was. For who asks about the same again.
  std::shared_ptr<const NcclAnswer> latest(const Router& router, const Placement& placement);
  void keep(std::shared_ptr<const NcclAnswer> latest) { latest_ = std::move(latest); }

 private:
  /// Forgets what is known of others.
  void keep_to(const Router& router, const Placement& placement);

  const Topology* topology_ = nullptr;
  LinkScope links_ = LinkScope::all;
  std::vector<NodeId> ranks_;
  std::optional<NcclMachine> machine_;
  std::map<std::pair<NcclVersion, bool>, NcclGraph> graphs_;
  std::shared_ptr<const NcclAnswer> latest_;
};

}  // namespace espalier
