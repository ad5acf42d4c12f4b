// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <type_traits>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// Which op last wrote each unit of each buffer, and which have read it since: what data
/// dependencies (builder) and races (verifier) are found from, and the order of steps that a
/// program is written as in other formats. Not installed.
///
/// A buffer is a tree of cells with 64 branches a level; units accessed alike share one cell as far
/// up as they can, so that memory follows the number of accesses, not the number of units. Lists of
/// readers are never changed once made, so cells may share them.
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

  struct Cell {
    OpId writer = kNone;
    Readers readers = {};         ///< since the write
    std::uint32_t child = kNone;  ///< node that holds the cells of the parts; the rest is void then
  };
  using Node = std::array<Cell, kFan>;
  struct Reader {
    OpId op;
    std::uint32_t next;
  };
  struct Root {
    Cell cell;
    int level = 0;  ///< the cell spans 64^level units
  };

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
  /// A node whose cells all equal `cell`.
  std::uint32_t new_node(const Cell& cell);
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

  std::vector<Root> roots_;  ///< by 3 * place + buffer
  std::deque<Node> nodes_;   ///< they stay where they are
  std::vector<std::uint32_t> free_nodes_;
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
    cell.child = new_node(cell);
  }
  const std::uint64_t part = span_of(level - 1);
  Node& parts = nodes_[cell.child];
  for (std::uint64_t i = begin / part; i * part < end; ++i) {
    const std::uint64_t from = i * part;
    visit<kWrite>(op, parts[i], level - 1, begin > from ? begin - from : 0,
                  end < from + part ? end - from : part, access);
  }
  if (kWrite && all) {  // the parts are alike now
    free_nodes_.push_back(cell.child);
    cell = {.writer = op};
  }
}

}  // namespace espalier
