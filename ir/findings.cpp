// SPDX-License-Identifier: Apache-2.0
#include "ir/findings.h"

#include <fmt/format.h>

namespace espalier {

bool Findings::any_up_to(Rule last) const {
  for (std::size_t rule = 1; rule <= static_cast<std::size_t>(last); ++rule) {
    if (kinds_[rule].count > 0) return true;
  }
  return false;
}

std::vector<Diagnostic> Findings::take() {
  std::vector<Diagnostic> all;
  for (std::size_t rule = 0; rule < kinds_.size(); ++rule) {
    Kind& kind = kinds_[rule];
    const bool is_limit = rule == static_cast<std::size_t>(Rule::limit);
    for (Kept& kept : kind.kept) {
      all.push_back(std::move(kept.diagnostic));
      all.back().rule = is_limit ? "limit" : fmt::format("R{}", rule);
    }
    if (kind.count > kind.kept.size()) {
      all.back().message += fmt::format(" (and {} more)", kind.count - kind.kept.size());
    }
    kind = {};
  }
  return all;
}

}  // namespace espalier
