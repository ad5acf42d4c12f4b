// SPDX-License-Identifier: Apache-2.0
#include "run/blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/print.h"

namespace espalier {
namespace {

std::vector<std::set<int>> lanes_by_place(const Program& program) {
  std::vector<std::set<int>> lanes(static_cast<std::size_t>(program.places()));
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::combine) lanes[static_cast<std::size_t>(op.at)].insert(op.lane);
  }
  return lanes;
}

}  // namespace

std::vector<int> moving_lanes(const Program& program) {
  std::vector<int> counts;
  for (const std::set<int>& lanes : lanes_by_place(program)) {
    counts.push_back(static_cast<int>(lanes.size()));
  }
  return counts;
}

std::optional<Diagnostic> too_many_lanes(const Program& program, const Target& target) {
  const int blocks = target.router == nullptr ? 0 : target.router->profile().blocks;
  if (blocks == 0) return std::nullopt;
  std::vector<std::set<int>> lanes = lanes_by_place(program);
  for (PlaceId place = 0; place < program.places(); ++place) {
    if (place_number(program, place).kind == PlaceKind::host) {
      lanes[static_cast<std::size_t>(place)].clear();
    }
  }
  const auto fullest = std::ranges::max_element(
      lanes, {}, [](const std::set<int>& of_place) { return of_place.size(); });
  if (fullest == lanes.end() || fullest->size() <= static_cast<std::size_t>(blocks)) {
    return std::nullopt;
  }
  const auto place = static_cast<PlaceId>(fullest - lanes.begin());
  Diagnostic problem{"R10",
                     fmt::format("{} uses {} lanes, and under profile {} a GPU has {} blocks",
                                 place_name(program, place), fullest->size(),
                                 target.router->profile().name, blocks),
                     "use fewer lanes, or leave out --no-merge: lanes then share blocks",
                     {}};
  std::set<int> met;
  for (OpId id = 0; id < program.lines.size(); ++id) {
    const Op& op = program.ops[id];
    if (op.at != place || op.kind != OpKind::combine) continue;
    met.insert(op.lane);
    if (met.size() <= static_cast<std::size_t>(blocks)) continue;
    problem.where.line = program.lines[id];
    break;
  }
  return problem;
}

std::optional<NodeId> lacking_gpu(const Protocol& protocol, const Topology& topology,
                                  const Placement& placement) {
  for (const std::vector<NodeId>* nodes : {&placement.ranks, &placement.relays}) {
    for (const NodeId node : *nodes) {
      const std::string& model = topology.node(node).model;
      const bool lacks = std::ranges::any_of(
          protocol.not_on, [&](const std::string& start) { return model.starts_with(start); });
      if (lacks) return node;
    }
  }
  return std::nullopt;
}

}  // namespace espalier
