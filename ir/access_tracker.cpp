// SPDX-License-Identifier: Apache-2.0
#include "ir/access_tracker.h"

#include <algorithm>

namespace espalier {

AccessTracker::Root& AccessTracker::root_of(const Operand& operand, std::uint64_t end) {
  const std::size_t index =
      3 * static_cast<std::size_t>(operand.place) + static_cast<std::size_t>(operand.buffer);
  if (index >= roots_.size()) roots_.resize(index + 1);
  Root& root = roots_[index];
  while (span_of(root.level) < end) {
    const bool touched =
        root.cell.writer != kNone || root.cell.reader != kNone || root.cell.child != kNone;
    if (touched) {
      const std::uint32_t child = new_node(Cell{});
      node(child)[0] = root.cell;
      root.cell = {.child = child};
    }
    ++root.level;
  }
  return root;
}

std::uint32_t AccessTracker::new_node(const Cell& cell) {
  std::uint32_t index = nodes_;
  if (!free_nodes_.empty()) {
    index = free_nodes_.back();
    free_nodes_.pop_back();
  } else {
    if (nodes_ % kNodesPerBlock == 0) blocks_.push_back(std::make_unique<Node[]>(kNodesPerBlock));
    ++nodes_;
  }
  node(index).fill(cell);
  return index;
}

OpId AccessTracker::last_writer(const Operand& operand, std::uint32_t length) const {
  const std::size_t index =
      3 * static_cast<std::size_t>(operand.place) + static_cast<std::size_t>(operand.buffer);
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
    const OpId writer = last_writer(node(cell.child)[i], level - 1, begin > from ? begin - from : 0,
                                    end < from + part ? end - from : part);
    if (writer != kNone && (latest == kNone || writer > latest)) latest = writer;
  }
  return latest;
}

}  // namespace espalier
