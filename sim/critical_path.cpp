// SPDX-License-Identifier: Apache-2.0
#include "sim/critical_path.h"

#include <algorithm>
#include <string>

namespace espalier {
namespace {

std::string what_it_waited_for(const Program& program, const OpHistory& history, OpId id) {
  const OpId cause = history.cause[id];
  if (cause == OpGraph::kNone) return "start";
  const Op& op = program.ops[id];
  if (std::ranges::count(program.dependencies_of(op), cause) > 0) {
    return "data of op " + std::to_string(cause);
  }
  return "lane " + std::to_string(op.lane) + " of " + place_name(program, op.at);
}

}  // namespace

std::vector<CriticalStep> critical_path(const Program& program, const OpHistory& history) {
  std::vector<CriticalStep> path;
  if (program.ops.empty()) return path;
  const auto last = std::ranges::max_element(history.end_s);
  auto id = static_cast<OpId>(last - history.end_s.begin());
  while (id != OpGraph::kNone && path.size() < kMostCriticalSteps) {
    path.push_back({id, history.start_s[id], history.end_s[id], to_string(program, id),
                    what_it_waited_for(program, history, id)});
    id = history.cause[id];
  }
  std::ranges::reverse(path);
  return path;
}

}  // namespace espalier
