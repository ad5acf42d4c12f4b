// SPDX-License-Identifier: Apache-2.0
#include "nccl/survey.h"

namespace espalier {

const NcclMachine& NcclSurvey::machine(const Router& router, const Placement& placement) {
  keep_to(router, placement);
  if (!machine_) machine_ = nccl_machine(router, placement);
  return *machine_;
}

const NcclGraph& NcclSurvey::graph(const Router& router, const Placement& placement,
                                   NcclVersion version, bool pxn) {
  const NcclMachine& machine = this->machine(router, placement);
  const std::pair key(version, pxn);
  if (const auto known = graphs_.find(key); known != graphs_.end()) return known->second;
  return graphs_.emplace(key, nccl_graph(machine, router, placement, version, pxn)).first->second;
}

std::shared_ptr<const NcclAnswer> NcclSurvey::latest(const Router& router,
                                                     const Placement& placement) {
  keep_to(router, placement);
  return latest_;
}

void NcclSurvey::keep_to(const Router& router, const Placement& placement) {
  const bool is_same = topology_ == &router.topology() && links_ == router.scope();
  if (is_same && ranks_ == placement.ranks) return;
  topology_ = &router.topology();
  links_ = router.scope();
  ranks_ = placement.ranks;
  machine_.reset();
  graphs_.clear();
  latest_.reset();
}

}  // namespace espalier
