// SPDX-License-Identifier: Apache-2.0
#include "sim/text_findings.h"

#include <cstddef>

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
  constexpr std::size_t kMaxKept = 4;
  const std::optional<TurnRules> rules = flows.turn_rules();
  if (!rules) return std::make_shared<const ShapeNumbers>(program_, flows);
  for (const auto& [of, numbers] : shapes_) {
    if (of == *rules) return numbers;
  }
  auto made = std::make_shared<const ShapeNumbers>(program_, flows);
  if (shapes_.size() == kMaxKept) shapes_.pop_back();
  shapes_.emplace_front(*rules, made);
  return made;
}

}  // namespace espalier
