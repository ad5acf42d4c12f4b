// SPDX-License-Identifier: Apache-2.0
#include "sim/stuck.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/words.h"
#include "ir/print.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxShown = 8;

bool ended(const OpHistory& history, OpId op) { return history.ends[op].end_s != OpEnd::kNever; }

/// "op 3, op 7 and lane 0 of r1 (op 2)".
std::string what_it_waits_for(const Program& program, const OpGraph& graph,
                              const OpHistory& history, OpId id) {
  const Op& op = program.ops[id];
  std::vector<std::string> reasons;
  std::size_t more = 0;
  for (const OpId dependency : program.dependencies_of(op)) {
    if (ended(history, dependency)) continue;
    if (reasons.size() < kMaxShown) {
      reasons.push_back(fmt::format("op {}", dependency));
    } else {
      ++more;
    }
  }
  if (more > 0) reasons.push_back(fmt::format("{} more ops", more));
  const OpId previous = graph.previous_in_lane(id);
  if (previous != OpGraph::kNone && !ended(history, previous)) {
    reasons.push_back(
        fmt::format("lane {} of {} (op {})", op.lane, place_name(program, op.at), previous));
  }
  if (std::ranges::count(history.without_steps, id) > 0) {
    reasons.push_back(
        fmt::format("a free step of its FIFO to {}, where nobody has read what came "
                    "before",
                    place_name(program, op.dst.place)));
  }
  if (reasons.empty()) return "its block, which an op holds that waits itself";
  const std::string last = reasons.back();
  reasons.pop_back();
  return reasons.empty() ? last : fmt::format("{} and {}", join(reasons, ", "), last);
}

}  // namespace

std::vector<Diagnostic> explain_stuck(const Program& program, const OpGraph& graph,
                                      const OpHistory& history) {
  std::vector<Diagnostic> problems(1);
  std::size_t blocked = 0;
  for (OpId id = 0; id < program.ops.size(); ++id) {
    if (ended(history, id)) continue;
    if (++blocked > kMaxShown) continue;
    Diagnostic problem;
    problem.message = fmt::format(
        "{} never starts op {} '{}', which waits for {}", place_name(program, program.ops[id].at),
        id, to_string(program, id), what_it_waits_for(program, graph, history, id));
    if (!program.lines.empty()) problem.where.line = program.lines[id];
    problems.push_back(std::move(problem));
  }
  problems.front().message =
      fmt::format("the program is stuck: {} of {} ops never start", blocked, program.ops.size());
  return problems;
}

}  // namespace espalier
