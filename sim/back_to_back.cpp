// SPDX-License-Identifier: Apache-2.0
#include "sim/back_to_back.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace espalier {
namespace {

/// When a GPU is busy with a call.
struct Span {
  double first_s = std::numeric_limits<double>::infinity();
  double last_s = 0;
  /// When the first op began whose result comes to it: if it has no ops of its own, it waits for
  /// that with a block of its own.
  double first_coming_s = std::numeric_limits<double>::infinity();

  double length_s() const {
    const bool has_ops = first_s <= last_s;
    return std::max(0.0, last_s - (has_ops ? first_s : first_coming_s));
  }
};

/// Lanes of all places, those that share a block as one, in groups that do not depend on each
/// other, such as the channels of a ring.
class LaneGroups {
 public:
  LaneGroups(const Program& program, const BlockMap& blocks) : blocks_(blocks) {
    for (const Op& op : program.ops) {
      const std::size_t lane = index(op);
      for (const OpId earlier : program.dependencies_of(op)) {
        parents_[top(lane)] = top(index(program.ops[earlier]));
      }
    }
  }

  /// A number that all lanes of its group have.
  std::size_t group(const Op& op) { return top(index(op)); }

 private:
  std::size_t index(const Op& op) {
    const std::uint64_t key =
        static_cast<std::uint64_t>(op.at) << 16 | blocks_.lane_on_block(op.at, op.lane);
    const auto [known, is_new] = lanes_.try_emplace(key, parents_.size());
    if (is_new) parents_.push_back(known->second);
    return known->second;
  }
  std::size_t top(std::size_t lane) {
    while (parents_[lane] != lane) lane = parents_[lane] = parents_[parents_[lane]];
    return lane;
  }

  const BlockMap& blocks_;
  std::unordered_map<std::uint64_t, std::size_t> lanes_;
  std::vector<std::size_t> parents_;
};

}  // namespace

double back_to_back_s(const Program& program, const BlockMap& blocks, const OpHistory& history,
                      const std::vector<LinkUse>& links, double call_overhead_s) {
  LaneGroups groups(program, blocks);
  std::map<std::pair<PlaceId, std::size_t>, Span> spans;  // by place and group
  for (OpId id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    const std::size_t group = groups.group(op);
    Span& own = spans[{op.at, group}];
    own.first_s = std::min(own.first_s, history.start_s[id]);
    own.last_s = std::max(own.last_s, history.end_s[id]);
    if (op.kind != OpKind::combine) continue;
    for_each_destination(program, op, [&](const Operand& dst) {
      Span& there = spans[{in_first_group(program.fold, dst, op.length).place, group}];
      there.first_coming_s = std::min(there.first_coming_s, history.start_s[id]);
      there.last_s = std::max(there.last_s, history.seen_s[id]);
    });
  }
  double period_s = 0;
  for (const auto& [place_and_group, span] : spans) {
    if (place_number(program, place_and_group.first).kind == PlaceKind::host) continue;
    period_s = std::max(period_s, span.length_s());
  }
  period_s += call_overhead_s;
  for (const LinkUse& link : links) period_s = std::max(period_s, link.busy_s);
  return period_s;
}

}  // namespace espalier
