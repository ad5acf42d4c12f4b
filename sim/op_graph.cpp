// SPDX-License-Identifier: Apache-2.0
#include "sim/op_graph.h"

#include <algorithm>

#include "core/check.h"
#include "core/interruption.h"
#include "ir/lane_numbers.h"

namespace espalier {

OpGraph::OpGraph(const Program& program, const std::vector<bool>& awaits_result)
    : program_(program),
      first_(program.ops.size() + 1, 0),
      next_in_lane_(program.ops.size(), kNone),
      has_previous_(program.ops.size(), false),
      moving_lanes_(static_cast<std::size_t>(program.places()), 0) {
  const std::vector<Op>& ops = program.ops;
  struct Lane {
    OpId last = kNone;
    std::uint32_t ops = 0;
    double units = 0;
    double compute_s = 0;
    bool moves = false;
  };
  LaneNumbers numbers;
  std::vector<Lane> lanes;
  for (OpId id = 0; id < ops.size(); ++id) {
    check_interruption_at(id);
    const Op& op = ops[id];
    for (const OpId dependency : program.dependencies_of(op)) {
      CHECK(dependency < ops.size());
      ++first_[dependency + 1];
    }
    const std::uint32_t number = numbers.number(op.at, op.lane);
    if (number == lanes.size()) lanes.emplace_back();
    Lane& lane = lanes[number];
    if (lane.last != kNone) {
      next_in_lane_[lane.last] = id;
      has_previous_[id] = true;
    }
    lane.last = id;
    if (op.kind != OpKind::combine) {
      lane.compute_s += program.duration_s(op);
    } else {
      if (!lane.moves) ++moving_lanes_[static_cast<std::size_t>(op.at)];
      lane.moves = true;
      lane.units += op.length;
    }
    most_ops_ = std::max(most_ops_, ++lane.ops);
    most_units_ = std::max(most_units_, lane.units);
    most_compute_s_ = std::max(most_compute_s_, lane.compute_s);
  }
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];

  // Filling moves every start to its end, which is the next op's start: shift back afterwards.
  successors_.resize(first_.back());
  if (program.fold.is_folded()) groups_.resize(first_.back());
  if (!awaits_result.empty()) awaits_result_.resize(first_.back());
  for (OpId id = 0; id < ops.size(); ++id) {
    for (std::uint32_t i = ops[id].dep_begin; i < ops[id].dep_begin + ops[id].dep_count; ++i) {
      const std::uint32_t at = first_[program.dependencies[i]]++;
      successors_[at] = id;
      if (!groups_.empty()) groups_[at] = program.fold.dependency_groups[i];
      if (!awaits_result_.empty()) awaits_result_[at] = awaits_result[i];
    }
  }
  std::rotate(first_.begin(), first_.end() - 1, first_.end());
  first_.front() = 0;
}

OpId OpGraph::previous_in_lane(OpId op) const {
  const auto found = std::ranges::find(next_in_lane_, op);
  return found == next_in_lane_.end() ? kNone : static_cast<OpId>(found - next_in_lane_.begin());
}

}  // namespace espalier
