// SPDX-License-Identifier: Apache-2.0
#include "sim/back_to_back.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/interruption.h"

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

/// Lanes of all places, those that share a block as one, in sets that do not depend on each other,
/// such as the channels of a ring. In a folded program a lane stands for those of all groups of
/// ranks, which may be of different sets: it is so many groups from the top of its set, and where
/// that leads round to the top itself, lanes that are so far apart are of one set.
class LaneSets {
 public:
  LaneSets(const Program& program, const BlockMap& blocks) : fold_(program.fold), blocks_(blocks) {
    for (OpId id = 0; id < program.ops.size(); ++id) {
      check_interruption_at(id);
      const Op& op = program.ops[id];
      const std::size_t lane = index(op);
      for (std::uint32_t i = op.dep_begin; i < op.dep_begin + op.dep_count; ++i) {
        const int group = fold_.is_folded() ? fold_.dependency_groups[i] : 0;
        join(lane, index(program.ops[program.dependencies[i]]), group);
      }
    }
  }

  /// What all lanes of a set have: of the op of the group that is so many before the first.
  std::pair<std::size_t, int> set(const Op& op, int groups_before) {
    const Top top = top_of(index(op));
    const int period = periods_[top.lane];
    return {top.lane, ((top.groups - groups_before) % period + period) % period};
  }

 private:
  struct Top {
    std::size_t lane = 0;
    int groups = 0;  ///< a lane of group g is of the set of the top's of group g + groups
  };

  std::size_t index(const Op& op) {
    const std::uint64_t key =
        static_cast<std::uint64_t>(op.at) << 16 | blocks_.lane_on_block(op.at, op.lane);
    const auto [known, is_new] = lanes_.try_emplace(key, tops_.size());
    if (is_new) {
      tops_.push_back({known->second, 0});
      periods_.push_back(fold_.groups);
    }
    return known->second;
  }

  Top top_of(std::size_t lane) {
    Top top{lane, 0};
    while (tops_[top.lane].lane != top.lane) {
      const Top up = tops_[top.lane];
      top = {up.lane, fold_.wrapped(top.groups + up.groups)};
    }
    for (Top rest = top; tops_[lane].lane != lane;) {  // next time at once
      const Top old = std::exchange(tops_[lane], rest);
      rest.groups = fold_.wrapped(rest.groups - old.groups);
      lane = old.lane;
    }
    return top;
  }

  /// A lane and another one, so many groups further on.
  void join(std::size_t lane, std::size_t other, int group) {
    const Top a = top_of(lane);
    const Top b = top_of(other);
    const int apart = fold_.wrapped(group + b.groups - a.groups);
    if (a.lane == b.lane) {
      periods_[a.lane] = std::gcd(periods_[a.lane], apart);
    } else {
      tops_[a.lane] = {b.lane, apart};
      periods_[b.lane] = std::gcd(periods_[b.lane], periods_[a.lane]);
    }
  }

  const Fold& fold_;
  const BlockMap& blocks_;
  std::unordered_map<std::uint64_t, std::size_t> lanes_;
  std::vector<Top> tops_;
  std::vector<int> periods_;  ///< of tops
};

}  // namespace

double back_to_back_s(const Program& program, const BlockMap& blocks, const OpHistory& history,
                      const std::vector<LinkUse>& links, double call_overhead_s) {
  LaneSets sets(program, blocks);
  // By place and set.
  std::map<std::pair<PlaceId, std::pair<std::size_t, int>>, Span> spans;
  for (OpId id = 0; id < program.ops.size(); ++id) {
    check_interruption_at(id);
    const Op& op = program.ops[id];
    Span& own = spans[{op.at, sets.set(op, 0)}];
    own.first_s = std::min(own.first_s, history.start_s[id]);
    own.last_s = std::max(own.last_s, history.end_s[id]);
    if (op.kind != OpKind::combine) continue;
    for_each_destination(program, op, [&](const Operand& dst) {
      // Where the first group's place gets the same from an earlier group.
      const PlaceId place = in_first_group(program.fold, dst, op.length).place;
      Span& there = spans[{place, sets.set(op, program.fold.group_of(dst.place))}];
      there.first_coming_s = std::min(there.first_coming_s, history.start_s[id]);
      there.last_s = std::max(there.last_s, history.seen_s[id]);
    });
  }
  double period_s = 0;
  for (const auto& [place_and_set, span] : spans) {
    if (place_number(program, place_and_set.first).kind == PlaceKind::host) continue;
    period_s = std::max(period_s, span.length_s());
  }
  period_s += call_overhead_s;
  for (const LinkUse& link : links) period_s = std::max(period_s, link.busy_s);
  return period_s;
}

}  // namespace espalier
