// SPDX-License-Identifier: Apache-2.0
#include "sim/critical_path.h"
#include "ir/print.h"

#include <algorithm>
#include <string>

#include "sim/op_graph.h"

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

void report_critical_path(const Program& program, const OpHistory& history,
                          SimulatedPart& simulated) {
  std::vector<CriticalStep>& path = simulated.critical_path;
  if (program.ops.empty()) return;
  const auto last = std::ranges::max_element(history.end_s);
  auto id = static_cast<OpId>(last - history.end_s.begin());
  for (; id != OpGraph::kNone; id = history.cause[id]) {
    ++simulated.critical_steps;
    if (path.size() == kMaxCriticalSteps) continue;
    path.push_back({id, history.start_s[id], history.end_s[id], to_string(program, id),
                    what_it_waited_for(program, history, id)});
  }
  std::ranges::reverse(path);
}

}  // namespace espalier
