// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// Numbers pairs of a place and a lane from 0, in the order in which they are first asked for. Not
/// installed.
class LaneNumbers {
 public:
  std::uint32_t number(PlaceId place, std::uint16_t lane) {
    // Most places use one lane, or the same one many times in a row.
    const auto at = static_cast<std::size_t>(place);
    if (at >= recent_.size()) recent_.resize(at + 1);
    Recent& recent = recent_[at];
    if (recent.lane != lane) {
      const std::uint64_t key = static_cast<std::uint64_t>(place) << 16 | lane;
      const auto next = static_cast<std::uint32_t>(numbers_.size());
      recent = {lane, numbers_.try_emplace(key, next).first->second};
    }
    return recent.number;
  }
  /// So many have been asked for.
  std::size_t size() const { return numbers_.size(); }

 private:
  struct Recent {
    std::uint32_t lane = ~std::uint32_t{0};  ///< none: lanes have 16 bits
    std::uint32_t number = 0;
  };
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  ///< by place and lane
  std::vector<Recent> recent_;                                ///< by place
};

}  // namespace espalier
