// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// Which op last wrote each unit of each buffer, and which have read it since: what data
/// dependencies (builder) and races (verifier) are found from, and the order of steps that a
/// program is written as in other formats. Not installed.
///
/// A buffer is a tree of cells with 64 branches a level; units accessed alike share one cell as far
/// up as they can, and neighbours below, while a few cells are enough: memory follows the number of
/// accesses, not the number of units. Lists of readers are never changed once made, so cells may
/// share them.
class AccessTracker {
 public:
  static constexpr OpId kNone = ~OpId{0};

  /// Readers of a unit since it was written, from the latest to the earliest. Two equal ones are
  /// the same list.
  struct Readers {
    OpId latest = kNone;         ///< kNone: there are none
    std::uint32_t more = kNone;  ///< the others; kNone: there are none
    auto operator<=>(const Readers&) const = default;
  };

  /// Records that `op` reads units [operand.begin, operand.begin + length). Before, calls
  /// `conflict(OpId)` for every op that wrote some of them last; an op may be named several times,
  /// `op` itself never is.
  template <class Conflict>
  void read(OpId op, const Operand& operand, std::uint32_t length, Conflict&& conflict) {
    read(op, operand, length, conflict, [](OpId) { return false; });
  }
  /// The same for whom it is enough that a write comes after the last of readers that are in order:
  /// where `follows(reader)`, which may miss some, `op` takes that reader's place.
  template <class Conflict, class Follows>
  void read(OpId op, const Operand& operand, std::uint32_t length, Conflict&& conflict,
            Follows&& follows);

  /// The same for a write, which conflicts with the last writers and with the readers since. Where
  /// `conflict` also takes Readers, it is called with all readers of a unit at once, `op` perhaps
  /// among them. An op's reads must be recorded before its write.
  template <class Conflict>
  void write(OpId op, const Operand& operand, std::uint32_t length, Conflict&& conflict);

  /// The list without its latest. \pre it is not empty
  Readers without_latest(const Readers& readers) const {
    if (readers.more == kNone) return {};
    return {readers_[readers.more].op, readers_[readers.more].next};
  }

  /// The latest op (the highest number) that wrote one of these units last, or kNone.
  OpId last_writer(const Operand& operand, std::uint32_t length) const;

 private:
  static constexpr int kLevelBits = 6;
  static constexpr std::uint32_t kFan = 1u << kLevelBits;
  static constexpr std::uint32_t kMaxRuns = 8;

  struct Cell {
    OpId writer = kNone;
    Readers readers = {};         ///< since the write
    std::uint32_t child = kNone;  ///< what holds the cells of the parts; the rest is void then
  };
  /// The parts of a cell as runs of parts accessed alike. Parts that have parts of their own, or of
  /// which some are accessed, are runs by themselves.
  struct Runs {
    std::array<std::uint8_t, kMaxRuns> ends;  ///< parts; the last run ends with the last part
    std::array<Cell, kMaxRuns> cells;

    std::uint32_t begin_of(std::uint32_t run) const { return run == 0 ? 0 : ends[run - 1]; }
    /// The run of a part.
    std::uint32_t run_of(std::uint32_t part) const {
      std::uint32_t run = 0;
      while (ends[run] <= part) ++run;
      return run;
    }
    /// Makes a run begin at a part. False: there are too many runs.
    bool cut(std::uint32_t part);
    /// Makes one of the runs of the parts [begin, end), which are alike.
    void join(std::uint32_t begin, std::uint32_t end);
  };
  /// The same as a cell for every part, where that is too few.
  using Parts = std::array<Cell, kFan>;
  /// In Cell::child: a number of Parts, not of Runs.
  static constexpr std::uint32_t kOfParts = std::uint32_t{1} << 31;

  /// Nodes by number, which stay where they are: memory for `kBlock` at a time.
  template <class Node, std::uint32_t kBlock>
  class Pool {
   public:
    Node& operator[](std::uint32_t at) { return (*blocks_[at / kBlock])[at % kBlock]; }
    const Node& operator[](std::uint32_t at) const { return (*blocks_[at / kBlock])[at % kBlock]; }
    std::uint32_t take() {
      if (!free_.empty()) {
        const std::uint32_t at = free_.back();
        free_.pop_back();
        return at;
      }
      if (used_ == blocks_.size() * kBlock) blocks_.push_back(std::make_unique<Block>());
      return used_++;
    }
    void give_back(std::uint32_t at) { free_.push_back(at); }

   private:
    using Block = std::array<Node, kBlock>;
    std::vector<std::unique_ptr<Block>> blocks_;
    std::vector<std::uint32_t> free_;
    std::uint32_t used_ = 0;
  };

  struct Reader {
    OpId op;
    std::uint32_t next;
  };
  struct Root {
    Cell cell;
    int level = 0;  ///< the cell spans 64^level units
  };

  /// Of the parts of a cell, as a power of two.
  static int shift_of(int level) { return kLevelBits * (level - 1); }
  /// The part that begins at the unit or after it.
  static std::uint32_t rounded_up(std::uint64_t unit, int shift) {
    return static_cast<std::uint32_t>((unit + (std::uint64_t{1} << shift) - 1) >> shift);
  }
  static std::uint64_t span_of(int level) { return std::uint64_t{1} << (kLevelBits * level); }
  static std::size_t root_index(const Operand& operand) {
    return 3 * static_cast<std::size_t>(operand.place) + static_cast<std::size_t>(operand.buffer);
  }
  /// The root of the operand's buffer, made to span units up to `end`.
  Root& root_of(const Operand& operand, std::uint64_t end) {
    const std::size_t index = root_index(operand);
    if (index >= roots_.size()) roots_.resize(index + 1);
    Root& root = roots_[index];
    while (span_of(root.level) < end) raise(root);
    return root;
  }
  /// Makes a root span a level more.
  void raise(Root& root);
  /// Cells for all parts of one, as it is.
  std::uint32_t new_runs(const Cell& cell);
  /// A cell for every part in place of runs.
  void divide(Cell& cell);
  void give_back(std::uint32_t child);
  /// Makes runs of what is accessed of a cell whose parts are 1 << `shift` units long.
  void cut(Cell& cell, int shift, std::uint64_t begin, std::uint64_t end);
  OpId last_writer(const Cell& cell, int level, std::uint64_t begin, std::uint64_t end) const;

  template <class Conflict, class Follows>
  void read_cell(OpId op, Cell& cell, Conflict& conflict, Follows& follows);
  template <class Conflict>
  void write_cell(OpId op, Cell& cell, Conflict& conflict);
  /// Calls `access(cell)` for the cells of units [begin, end) of the span of `cell`. `kWrite`: they
  /// are alike afterwards.
  template <bool kWrite, class Access>
  void visit(OpId op, Cell& cell, int level, std::uint64_t begin, std::uint64_t end,
             Access& access);
  template <bool kWrite, class Access>
  void visit_runs(OpId op, Runs& runs, int level, std::uint64_t begin, std::uint64_t end,
                  Access& access);
  template <bool kWrite, class Access>
  void visit_parts(OpId op, Parts& parts, int level, std::uint64_t begin, std::uint64_t end,
                   Access& access);

  std::vector<Root> roots_;  ///< by 3 * place + buffer
  Pool<Runs, 32> runs_;
  Pool<Parts, 4> parts_;
  std::vector<Reader> readers_;
};

template <class Conflict, class Follows>
void AccessTracker::read(OpId op, const Operand& operand, std::uint32_t length, Conflict&& conflict,
                         Follows&& follows) {
  const std::uint64_t end = std::uint64_t{operand.begin} + length;
  Root& root = root_of(operand, end);
  const auto access = [&](Cell& cell) { read_cell(op, cell, conflict, follows); };
  visit<false>(op, root.cell, root.level, operand.begin, end, access);
}

template <class Conflict>
void AccessTracker::write(OpId op, const Operand& operand, std::uint32_t length,
                          Conflict&& conflict) {
  const std::uint64_t end = std::uint64_t{operand.begin} + length;
  Root& root = root_of(operand, end);
  const auto access = [&](Cell& cell) { write_cell(op, cell, conflict); };
  visit<true>(op, root.cell, root.level, operand.begin, end, access);
}

template <class Conflict, class Follows>
void AccessTracker::read_cell(OpId op, Cell& cell, Conflict& conflict, Follows& follows) {
  if (cell.writer != kNone && cell.writer != op) conflict(cell.writer);
  Readers& readers = cell.readers;
  if (readers.latest == op) return;
  if (readers.latest != kNone && !follows(readers.latest)) {
    readers_.push_back({readers.latest, readers.more});
    readers.more = static_cast<std::uint32_t>(readers_.size() - 1);
  }
  readers.latest = op;
}

template <class Conflict>
void AccessTracker::write_cell(OpId op, Cell& cell, Conflict& conflict) {
  if (cell.writer != kNone && cell.writer != op) conflict(cell.writer);
  if constexpr (std::is_invocable_v<Conflict&, const Readers&>) {
    if (cell.readers.latest != kNone) conflict(cell.readers);
  } else {
    for (Readers rest = cell.readers; rest.latest != kNone; rest = without_latest(rest)) {
      if (rest.latest != op) conflict(rest.latest);
    }
  }
  cell = {.writer = op};
}

template <bool kWrite, class Access>
void AccessTracker::visit(OpId op, Cell& cell, int level, std::uint64_t begin, std::uint64_t end,
                          Access& access) {
  const bool all = begin == 0 && end == span_of(level);
  if (cell.child == kNone) {
    if (all) {
      access(cell);
      return;
    }
    cell.child = new_runs(cell);
  }
  if (!all && (cell.child & kOfParts) == 0) cut(cell, shift_of(level), begin, end);
  if ((cell.child & kOfParts) == 0) {
    visit_runs<kWrite>(op, runs_[cell.child], level, begin, end, access);
  } else {
    visit_parts<kWrite>(op, parts_[cell.child & ~kOfParts], level, begin, end, access);
  }
  if (kWrite && all) {  // the parts are alike now
    give_back(cell.child);
    cell = {.writer = op};
  }
}

template <bool kWrite, class Access>
void AccessTracker::visit_runs(OpId op, Runs& runs, int level, std::uint64_t begin,
                               std::uint64_t end, Access& access) {
  const int shift = shift_of(level);
  std::uint32_t run = runs.run_of(static_cast<std::uint32_t>(begin >> shift));
  std::uint64_t from = std::uint64_t{runs.begin_of(run)} << shift;
  for (; from < end; ++run) {
    const std::uint64_t until = std::uint64_t{runs.ends[run]} << shift;
    Cell& cell = runs.cells[run];
    if (cell.child == kNone && begin <= from && until <= end) {
      access(cell);
    } else {  // one part
      visit<kWrite>(op, cell, level - 1, std::max(begin, from) - from, std::min(end, until) - from,
                    access);
    }
    from = until;
  }
  if (kWrite) runs.join(rounded_up(begin, shift), static_cast<std::uint32_t>(end >> shift));
}

template <bool kWrite, class Access>
void AccessTracker::visit_parts(OpId op, Parts& parts, int level, std::uint64_t begin,
                                std::uint64_t end, Access& access) {
  const int shift = shift_of(level);
  for (std::uint64_t i = begin >> shift; i << shift < end; ++i) {
    const std::uint64_t from = i << shift;
    const std::uint64_t until = from + (std::uint64_t{1} << shift);
    visit<kWrite>(op, parts[i], level - 1, std::max(begin, from) - from,
                  std::min(end, until) - from, access);
  }
}

}  // namespace espalier
