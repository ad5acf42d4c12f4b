// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// Puts scratch where rule R4 wants it. Runtimes with equal chunks keep any unit of the message in
/// any chunk of scratch; in a program of ours a unit lies at its position within a block, whatever
/// the buffer. So the same chunk may have to be several units of scratch, by what it holds. Private
/// to the room.
class ScratchMap {
 public:
  /// `block`: block_units of the contract.
  explicit ScratchMap(std::int64_t block) : block_(block) {}

  /// Part of a move whose units of scratch all go the same way.
  struct Run {
    int begin = 0;
    int count = 0;
    std::vector<std::int64_t> turns;  ///< of the destination and of the sources; see `placed`
  };

  /// Notes a move, in the order in which they happen, and says into which parts it falls; nothing
  /// when it takes units to other positions.
  std::optional<std::vector<Run>> note(const Operand& dst, std::span<const Operand> sources,
                                       int count);
  /// Finds room for everything noted.
  void place();
  /// Where unit `begin` of an operand goes. `turn`: as its run has it.
  Operand placed(const Operand& operand, int begin, std::int64_t turn) const;

 private:
  using Cell = std::uint64_t;  ///< place and chunk
  static Cell cell(PlaceId place, std::uint64_t chunk) {
    return (std::uint64_t{static_cast<std::uint32_t>(place)} << 36) | chunk;
  }
  std::int64_t position(const Operand& operand, int i) const;

  std::int64_t block_;
  std::unordered_map<Cell, std::int64_t> holds_;  ///< position within a block of what lies there
  /// By place and turn (what to add to a chunk's number for it to be at its position): chunks.
  std::map<std::pair<PlaceId, std::int64_t>, std::set<std::int64_t>> chunks_;
  std::map<std::pair<PlaceId, std::int64_t>, std::int64_t> shifts_;
};

}  // namespace espalier
