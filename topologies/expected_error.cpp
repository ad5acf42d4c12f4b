// SPDX-License-Identifier: Apache-2.0
#include "topologies/expected_error.h"

#include <algorithm>
#include <utility>

namespace espalier {

ExpectedError expected_error(const std::vector<ComparedError>& errors, const Compared& what) {
  const auto fits = [&](const ComparedError& row) {
    const bool is_model = std::ranges::any_of(row.models, [&](const std::string& start) {
      return start == "other" || what.model.starts_with(start);
    });
    return is_model && row.in_switch == what.in_switch && (what.in_fabric || !row.in_fabric) &&
           (row.above_bytes <= 0 || what.bytes > row.above_bytes) && what.bytes <= row.up_to_bytes;
  };
  const auto found = std::ranges::find_if(errors, fits);
  if (found == errors.end()) {
    return estimated_error("no measured times of such GPUs, links, ops and sizes were compared");
  }
  return {found->relative, found->compared, false};
}

ExpectedError estimated_error(std::string why, double relative) {
  return {relative, "estimate: " + std::move(why), true};
}

}  // namespace espalier
