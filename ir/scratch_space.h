// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// Scratch that a program does not use yet, for passes that need some: at a given position within a
/// block, as R4 demands, and packed, so that units of different positions share a block. Private to
/// passes.
class ScratchSpace {
 public:
  /// \param block  block_units of the contract
  ScratchSpace(const std::vector<std::int64_t>& used_units, std::int64_t block) : block_(block) {
    for (const std::int64_t units : used_units) first_.push_back((units + block - 1) / block);
    rows_.resize(used_units.size());
  }

  /// As many units as `like` has, at its position within a block. Amortised O(length).
  Slice take(PlaceId place, const Slice& like) {
    const auto index = static_cast<std::size_t>(place);
    std::vector<std::int64_t>& rows = rows_[index];
    if (rows.empty()) rows.assign(static_cast<std::size_t>(block_), first_[index]);
    const std::int64_t position = like.begin % block_;
    std::int64_t row = 0;
    const auto each = [&](auto&& visit) {
      for (std::int64_t i = 0; i < std::min(like.length, block_); ++i) {
        visit(rows[static_cast<std::size_t>((position + i) % block_)]);
      }
    };
    each([&](std::int64_t& next) { row = std::max(row, next); });
    const std::int64_t after = row + (position + like.length + block_ - 1) / block_;
    each([&](std::int64_t& next) { next = after; });
    return {place, Buffer::tmp, row * block_ + position, like.length};
  }

 private:
  std::int64_t block_;
  std::vector<std::int64_t> first_;              ///< block that is free, by place
  std::vector<std::vector<std::int64_t>> rows_;  ///< by place and position within a block
};

}  // namespace espalier
