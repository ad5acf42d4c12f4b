// SPDX-License-Identifier: Apache-2.0
#include "ir/access_tracker.h"

#include <algorithm>

namespace espalier {

void AccessTracker::raise(Root& root) {
  const bool touched =
      root.cell.writer != kNone || root.cell.readers.latest != kNone || root.cell.child != kNone;
  if (touched) {
    const std::uint32_t child = new_node(Cell{});
    nodes_[child][0] = root.cell;
    root.cell = {.child = child};
  }
  ++root.level;
}

std::uint32_t AccessTracker::new_node(const Cell& cell) {
  auto index = static_cast<std::uint32_t>(nodes_.size());
  if (free_nodes_.empty()) {
    nodes_.emplace_back();
  } else {
    index = free_nodes_.back();
    free_nodes_.pop_back();
  }
  nodes_[index].fill(cell);
  return index;
}

OpId AccessTracker::last_writer(const Operand& operand, std::uint32_t length) const {
  const std::size_t index = root_index(operand);
  if (index >= roots_.size()) return kNone;
  const Root& root = roots_[index];
  const std::uint64_t span = span_of(root.level);
  const std::uint64_t end = std::min(span, std::uint64_t{operand.begin} + length);
  if (operand.begin >= end) return kNone;
  return last_writer(root.cell, root.level, operand.begin, end);
}

OpId AccessTracker::last_writer(const Cell& cell, int level, std::uint64_t begin,
                                std::uint64_t end) const {
  if (cell.child == kNone) return cell.writer;
  const std::uint64_t part = span_of(level - 1);
  OpId latest = kNone;
  for (std::uint64_t i = begin / part; i * part < end; ++i) {
    const std::uint64_t from = i * part;
    const OpId writer =
        last_writer(nodes_[cell.child][i], level - 1, begin > from ? begin - from : 0,
                    end < from + part ? end - from : part);
    if (writer != kNone && (latest == kNone || writer > latest)) latest = writer;
  }
  return latest;
}

}  // namespace espalier
