// SPDX-License-Identifier: Apache-2.0
#include "ir/split_lanes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "core/check.h"

namespace espalier {

Program split_lanes(const Program& program, int most) {
  CHECK(most > 0);
  struct Lane {
    int ops = 0;
    int now = 0;  ///< the lane it goes on as
    OpId last = 0;
  };
  std::map<std::pair<PlaceId, int>, Lane> lanes;
  std::map<PlaceId, int> next;  ///< lanes that a place has
  for (const Op& op : program.ops) {
    lanes[{op.at, op.lane}].now = op.lane;
    next[op.at] = std::max(next[op.at], op.lane + 1);
  }
  Program split = program;
  split.dependencies.clear();
  for (OpId id = 0; id < split.ops.size(); ++id) {
    Op& op = split.ops[id];
    const auto dependencies = program.dependencies_of(program.ops[id]);
    op.dep_begin = static_cast<std::uint32_t>(split.dependencies.size());
    split.dependencies.insert(split.dependencies.end(), dependencies.begin(), dependencies.end());
    Lane& lane = lanes[{op.at, op.lane}];
    if (lane.ops == most) {
      CHECK(next[op.at] <= std::numeric_limits<std::uint16_t>::max());
      lane.ops = 0;
      lane.now = next[op.at]++;
      split.dependencies.push_back(lane.last);
    }
    ++lane.ops;
    lane.last = id;
    op.lane = static_cast<std::uint16_t>(lane.now);
    op.dep_count = static_cast<std::uint32_t>(split.dependencies.size() - op.dep_begin);
  }
  return split;
}

}  // namespace espalier
