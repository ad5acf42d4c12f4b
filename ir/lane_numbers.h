// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/hash.h"
#include "core/hash_numbers.h"
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
      recent = {lane, numbers_.number(mix64(key))};
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
  HashNumbers numbers_;         ///< by place and lane
  std::vector<Recent> recent_;  ///< by place
};

}  // namespace espalier
