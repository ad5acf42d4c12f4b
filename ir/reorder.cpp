// SPDX-License-Identifier: Apache-2.0
#include "ir/reorder.h"

#include <algorithm>
#include <vector>

#include "core/check.h"

namespace espalier {

Program reorder(const Program& program, std::span<const OpId> order,
                std::span<const std::uint16_t> lanes) {
  constexpr OpId kUnknown = ~OpId{0};
  CHECK(order.size() == program.ops.size() && lanes.size() == program.ops.size());
  Program result = program;
  result.ops.clear();
  result.dependencies.clear();
  result.lines.clear();
  std::vector<OpId> number(program.ops.size(), kUnknown);
  for (const OpId id : order) {
    CHECK(number[id] == kUnknown);
    number[id] = static_cast<OpId>(result.ops.size());
    Op op = program.ops[id];
    op.lane = lanes[id];
    op.dep_begin = static_cast<std::uint32_t>(result.dependencies.size());
    for (const OpId dependency : program.dependencies_of(program.ops[id])) {
      CHECK(number[dependency] != kUnknown);
      result.dependencies.push_back(number[dependency]);
    }
    std::sort(result.dependencies.begin() + op.dep_begin, result.dependencies.end());
    result.ops.push_back(op);
    if (!program.lines.empty()) result.lines.push_back(program.lines[id]);
  }
  return result;
}

}  // namespace espalier
