// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// Units that no op tells apart, numbered. Operands of an op start at the same place of a block
/// (R4), so the places of a block at which some slice begins or ends cut every buffer into cells
/// that are read and written as a whole. A ring over 1024 ranks has 1024 cells a buffer however
/// many units its message is chunked into.
class CellMap {
 public:
  /// `block`: block_units of the contract, or 1 where ops move units to other positions.
  CellMap(const Program& program, std::int64_t block);

  std::uint64_t count() const { return base_.back(); }
  std::uint64_t per_block() const { return cuts_.size() - 1; }
  /// Cells of a buffer's first `units` units. `units` must be a cut.
  std::uint64_t cells_of(std::int64_t units) const {
    const auto block = static_cast<std::uint32_t>(block_);
    const auto whole = static_cast<std::uint32_t>(units) / block;
    const auto within = static_cast<std::uint32_t>(units) % block;
    return whole * per_block() + (dense_ ? within : index_[within]);
  }
  /// The first cell of an operand.
  std::uint64_t first(const Operand& operand) const {
    return base_[buffer_index(operand.place, operand.buffer)] + cells_of(operand.begin);
  }
  /// Cells of every operand of an op.
  std::uint64_t length(const Op& op) const {
    return cells_of(std::int64_t{op.dst.begin} + op.length) - cells_of(op.dst.begin);
  }
  /// First unit of the `cell`-th cell of a buffer; the unit after a cell is that of the next one.
  std::int64_t unit_of(std::uint64_t cell) const {
    return static_cast<std::int64_t>(cell / per_block()) * block_ + cuts_[cell % per_block()];
  }

 private:
  static std::size_t buffer_index(PlaceId place, Buffer buffer) {
    return 3 * static_cast<std::size_t>(place) + static_cast<std::size_t>(buffer);
  }

  std::int64_t block_;
  bool dense_ = false;                ///< every unit is a cell
  std::vector<std::int64_t> cuts_;    ///< first units of the cells of a block, and its end
  std::vector<std::uint32_t> index_;  ///< by unit of a block that is a cut; empty when dense
  std::vector<std::uint64_t> base_;   ///< first cell by buffer_index; all cells at the end
};

}  // namespace espalier
