// SPDX-License-Identifier: Apache-2.0
#include "exec/lanes/stuck_report.h"
#include "ir/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace espalier {
namespace {

constexpr std::size_t kMaxNamed = 8;

std::string name_of(const Program& program, const Lane& lane) {
  return fmt::format("{} lane {}", place_name(program, lane.place), lane.lane);
}

std::string name_of(const Program& program, OpId op) {
  return fmt::format("op {} '{}'", op, to_string(program, op));
}

}  // namespace

std::vector<BlockedLane> unfinished_lanes(const Program& program, const LanePrograms& lowered,
                                          const std::vector<bool>& ended) {
  std::vector<BlockedLane> blocked;
  for (std::uint32_t lane = 0; lane < lowered.lanes.size(); ++lane) {
    const auto commands = lowered.commands_of(lowered.lanes[lane]);
    const auto next = std::ranges::find_if(commands, [&](const Command& command) {
      const bool is_op =
          command.kind == CommandKind::combine || command.kind == CommandKind::compute;
      return is_op && !ended[command.index];
    });
    if (next == commands.end()) continue;
    BlockedLane& entry = blocked.emplace_back();
    entry.lane = lane;
    entry.op = next->index;
    for (const OpId needed : program.dependencies_of(program.ops[entry.op])) {
      if (ended[needed]) continue;
      entry.waits_for = needed;
      break;
    }
  }
  return blocked;
}

Error stuck_error(const std::string& what, const Program& program, const LanePrograms& lowered,
                  const std::vector<BlockedLane>& blocked) {
  std::vector<Diagnostic> diagnostics(1);
  diagnostics[0].message = fmt::format("{} ({} of {} lanes have not finished)", what,
                                       blocked.size(), lowered.lanes.size());
  for (const BlockedLane& lane : blocked) {
    if (diagnostics.size() > kMaxNamed) {
      diagnostics.push_back({});
      diagnostics.back().message = fmt::format("... and {} more lanes", blocked.size() - kMaxNamed);
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
      diagnostic.suggestion = "if it is only slow, raise --timeout";
    }
    if (!program.lines.empty()) diagnostic.where.line = program.lines[lane.op];
    diagnostics.push_back(std::move(diagnostic));
  }
  return {ErrorKind::runtime, std::move(diagnostics)};
}

}  // namespace espalier
