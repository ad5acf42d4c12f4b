// SPDX-License-Identifier: Apache-2.0
#include "exec/stuck_report.h"

#include <fmt/format.h>

#include <utility>

namespace espalier {
namespace {

constexpr std::size_t kMostNamed = 8;

std::string name_of(const Program& program, const Lane& lane) {
  return fmt::format("{} lane {}", place_name(program, lane.place), lane.lane);
}

std::string name_of(const Program& program, OpId op) {
  return fmt::format("op {} '{}'", op, to_string(program, op));
}

}  // namespace

Error stuck_error(const std::string& what, const Program& program, const LanePrograms& lowered,
                  const std::vector<BlockedLane>& blocked) {
  std::vector<Diagnostic> diagnostics(1);
  diagnostics[0].message = fmt::format("{} ({} of {} lanes have not finished)", what,
                                       blocked.size(), lowered.lanes.size());
  for (const BlockedLane& lane : blocked) {
    if (diagnostics.size() > kMostNamed) {
      diagnostics.push_back({});
      diagnostics.back().message =
          fmt::format("... and {} more lanes", blocked.size() - kMostNamed);
      break;
    }
    Diagnostic diagnostic;
    diagnostic.message =
        name_of(program, lowered.lanes[lane.lane]) + ": " + name_of(program, lane.op);
    if (lane.waits_for != BlockedLane::kNone) {
      const Op& needed = program.ops[lane.waits_for];
      diagnostic.message += " waits for " + name_of(program, lane.waits_for) + " of " +
                            name_of(program, Lane{needed.at, needed.lane, 0, 0});
    } else {
      diagnostic.message += " has not finished";
    }
    if (!program.lines.empty()) diagnostic.where.line = program.lines[lane.op];
    diagnostics.push_back(std::move(diagnostic));
  }
  return {ErrorKind::runtime, std::move(diagnostics)};
}

}  // namespace espalier
