// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/program.h"
#include "sim/block_map.h"
#include "sim/time_unit.h"

namespace espalier {

/// The blocks that lanes share (BlockMap), and which op has one next: the one whose results were
/// there first; of several at the same instant, the one that comes first on its lane, and of these
/// that of the lowest lane. So it depends on lanes and dependencies alone: neither on the order of
/// the program's text, which files of others don't have, nor on roundings. One simulation.
class SharedBlocks {
 public:
  /// An op that begins on a block.
  struct Taken {
    OpId op = 0;
    /// Whom the block carried out before, if that ended after the op could have begun.
    std::optional<OpId> waited_for;
  };

  SharedBlocks(const Program& program, const BlockMap& blocks);

  /// Whether the op's lane shares a block.
  bool has(OpId id) const { return block_of(id) != BlockMap::kNone; }
  /// The op can begin at `ready`, once it has its block. \pre `has`
  void wait(OpId id, Ticks ready);
  /// The op has ended at `now`; nothing where it had no shared block.
  void free(OpId id, Ticks now);
  /// Gives a free block to an op that waits for it, if there are both. To be called when everything
  /// has happened that happens at the instant.
  std::optional<Taken> take();

 private:
  /// What is asked about an op again and again, in one place: ops lie far apart in memory.
  struct OpPlace {
    std::uint32_t block = BlockMap::kNone;
    std::uint32_t position = 0;  ///< on its lane
    std::uint16_t lane = 0;
  };
  /// An op, by what decides among those that wait: the instant at which it came is that of the
  /// first one that came then.
  struct Waiting {
    double instant = 0;
    std::uint32_t position = 0;
    std::uint16_t lane = 0;
    OpId op = 0;
    auto operator<=>(const Waiting&) const = default;
  };
  struct Block {
    bool is_busy = false;
    bool is_listed = false;        ///< in open_
    std::vector<Waiting> waiting;  ///< in order, from `next` on: most come last
    std::size_t next = 0;
    OpId last = 0;    ///< whom it carried out last, until `freed`
    Ticks freed{-1};  ///< before all dates: nobody yet

    bool has_next() const { return next < waiting.size(); }
  };

  std::uint32_t block_of(OpId id) const {
    return places_.empty() ? BlockMap::kNone : places_[id].block;
  }
  void list(std::uint32_t number);

  std::vector<OpPlace> places_;  ///< by op; empty where no lanes share blocks
  std::vector<Block> state_;
  std::vector<std::uint32_t> open_;  ///< blocks that may have an op to begin
};

}  // namespace espalier
