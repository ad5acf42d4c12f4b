// SPDX-License-Identifier: Apache-2.0
#include "sim/text_findings.h"

namespace espalier {

const Rounds& TextFindings::rounds() {
  if (!rounds_) rounds_ = find_rounds(program_).value_or(Rounds{});
  return *rounds_;
}

std::shared_ptr<const OpsOverLinks> TextFindings::ops_over_links() {
  if (!ops_over_links_) {
    ops_over_links_ = std::make_shared<const OpsOverLinks>(espalier::ops_over_links(program_));
  }
  return ops_over_links_;
}

std::shared_ptr<const ShapeNumbers> TextFindings::shapes(const MachineFlows& flows) {
  const std::optional<TurnRules> rules = flows.turn_rules();
  if (rules && shapes_ && shapes_->first == *rules) return shapes_->second;
  auto made = std::make_shared<const ShapeNumbers>(program_, flows);
  if (rules) shapes_.emplace(*rules, made);
  return made;
}

}  // namespace espalier
