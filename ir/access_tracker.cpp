// SPDX-License-Identifier: Apache-2.0
#include "ir/access_tracker.h"

#include <algorithm>

namespace espalier {

bool AccessTracker::Runs::cut(std::uint32_t part) {
  if (part == kFan) return true;
  const std::uint32_t run = run_of(part);
  if (begin_of(run) == part) return true;
  if (ends.back() == kFan) return false;
  std::copy_backward(ends.begin() + run, ends.end() - 1, ends.end());
  std::copy_backward(cells.begin() + run, cells.end() - 1, cells.end());
  ends[run] = static_cast<std::uint8_t>(part);
  return true;
}

void AccessTracker::Runs::join(std::uint32_t begin, std::uint32_t end) {
  if (begin >= end) return;
  const std::uint32_t first = run_of(begin);
  const std::uint32_t last = run_of(end - 1);
  std::copy(ends.begin() + last, ends.end(), ends.begin() + first);
  std::copy(cells.begin() + last, cells.end(), cells.begin() + first);
  std::fill(ends.end() - (last - first), ends.end(), std::uint8_t{0});
}

void AccessTracker::raise(Root& root) {
  const bool touched =
      root.cell.writer != kNone || root.cell.readers.latest != kNone || root.cell.child != kNone;
  if (touched) {
    const std::uint32_t child = new_runs(Cell{});
    runs_[child].cut(1);
    runs_[child].cells[0] = root.cell;
    root.cell = {.child = child};
  }
  ++root.level;
}

std::uint32_t AccessTracker::new_runs(const Cell& cell) {
  const std::uint32_t child = runs_.take();
  runs_[child].ends = {kFan};
  runs_[child].cells[0] = cell;
  return child;
}

void AccessTracker::divide(Cell& cell) {
  const Runs& runs = runs_[cell.child];
  const std::uint32_t child = parts_.take();
  std::uint32_t run = 0;
  for (std::uint32_t part = 0; part < kFan; ++part) {
    if (part == runs.ends[run]) ++run;
    parts_[child][part] = runs.cells[run];
  }
  runs_.give_back(cell.child);
  cell.child = child | kOfParts;
}

void AccessTracker::give_back(std::uint32_t child) {
  if ((child & kOfParts) == 0) {
    runs_.give_back(child);
  } else {
    parts_.give_back(child & ~kOfParts);
  }
}

void AccessTracker::cut(Cell& cell, int shift, std::uint64_t begin, std::uint64_t end) {
  Runs& runs = runs_[cell.child];
  const bool has_room =
      runs.cut(static_cast<std::uint32_t>(begin >> shift)) && runs.cut(rounded_up(begin, shift)) &&
      runs.cut(static_cast<std::uint32_t>(end >> shift)) && runs.cut(rounded_up(end, shift));
  if (!has_room) divide(cell);
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
  const int shift = shift_of(level);
  OpId latest = kNone;
  const auto visit = [&](const Cell& part, std::uint64_t from, std::uint64_t until) {
    const OpId writer =
        last_writer(part, level - 1, std::max(begin, from) - from, std::min(end, until) - from);
    if (writer != kNone && (latest == kNone || writer > latest)) latest = writer;
  };
  if ((cell.child & kOfParts) == 0) {
    const Runs& runs = runs_[cell.child];
    std::uint32_t run = runs.run_of(static_cast<std::uint32_t>(begin >> shift));
    for (; std::uint64_t{runs.begin_of(run)} << shift < end; ++run) {
      visit(runs.cells[run], std::uint64_t{runs.begin_of(run)} << shift,
            std::uint64_t{runs.ends[run]} << shift);
      if (runs.ends[run] == kFan) break;
    }
  } else {
    const Parts& parts = parts_[cell.child & ~kOfParts];
    for (std::uint64_t i = begin >> shift; i << shift < end; ++i) {
      visit(parts[i], i << shift, (i + 1) << shift);
    }
  }
  return latest;
}

}  // namespace espalier
