// SPDX-License-Identifier: Apache-2.0
#include "scenarios/turns.h"

#include <cmath>

#include "scenarios/chooser.h"

namespace espalier {

bool is_costly(Study& study, const std::string& algorithm) {
  return is_chooser(algorithm) || study.choice(algorithm).algorithm->plan != nullptr;
}

std::vector<Query> cheap_first(Study& study, std::vector<Query> queries) {
  if (std::isinf(time_left_s())) return queries;
  for (auto first = queries.begin(); first != queries.end();) {
    const auto last = std::find_if(first, queries.end(), [&](const Query& query) {
      return query.size_bytes != first->size_bytes;
    });
    std::stable_partition(first, last,
                          [&](const Query& query) { return !is_costly(study, query.algorithm); });
    first = last;
  }
  return queries;
}

}  // namespace espalier
