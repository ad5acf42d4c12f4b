// SPDX-License-Identifier: Apache-2.0
#include "sim/critical_path.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ir/print.h"
#include "ir/unfold.h"
#include "sim/op_graph.h"

namespace espalier {
namespace {

/// Of the group's op.
std::string text_of(const Program& program, OpId id, int group) {
  if (!program.fold.is_folded()) return to_string(program, id);
  return to_string(op_of_group(program, id, group), 0);
}

std::string what_it_waited_for(const Program& program, const OpHistory& history, OpId id,
                               int group) {
  const OpId cause = history.ops[id].cause;
  if (cause == OpGraph::kNone) return "start";
  const Op& op = program.ops[id];
  // Of an op that it does not name, it waits for the result only while that is under way.
  const OpRecord& before = history.ops[cause];
  const bool landed_last = before.end_s < before.seen_s && before.seen_s <= history.ops[id].start_s;
  if (landed_last || std::ranges::count(program.dependencies_of(op), cause) > 0) {
    return "data of op " + std::to_string(cause);
  }
  const PlaceId at = program.fold.is_folded() ? program.fold.rank_moved(op.at, group) : op.at;
  const std::string place = place_name(program, at);
  // Lanes may share blocks.
  if (program.ops[cause].lane != op.lane) return "a block of " + place;
  return "lane " + std::to_string(op.lane) + " of " + place;
}

}  // namespace

void report_critical_path(const Program& program, const OpHistory& history,
                          SimulatedPart& simulated) {
  std::vector<CriticalStep>& path = simulated.critical_path;
  if (program.ops.empty()) return;
  const auto last = std::ranges::max_element(history.ops, {}, &OpRecord::seen_s);
  auto id = static_cast<OpId>(last - history.ops.begin());
  double until_s =
      last->seen_s;  // when the next one could start: the lane was free, or the result there
  int group = 0;     // of a folded program: the path ends in the first one
  while (id != OpGraph::kNone) {
    ++simulated.critical_steps;
    const double start_s = history.ops[id].start_s;
    const double end_s = std::exchange(until_s, start_s);
    if (path.size() < kMaxCriticalSteps) {
      path.push_back({id, start_s, end_s, text_of(program, id, group),
                      what_it_waited_for(program, history, id, group)});
    }
    if (program.fold.is_folded()) group = program.fold.wrapped(group + history.cause_group[id]);
    id = history.ops[id].cause;
  }
  std::ranges::reverse(path);
}

}  // namespace espalier
