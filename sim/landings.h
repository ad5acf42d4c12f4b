// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/program.h"
#include "sim/time_unit.h"

namespace espalier {

/// What has been written but cannot be seen yet: results that are under way, by place and by where
/// they are written.
class Landings {
 public:
  struct Landing {
    OpId op = 0;
    Ticks until;
    Operand written;  ///< where the first group has it
    std::uint32_t length = 0;
    int group = 0;            ///< of the place
    std::uint64_t order = 0;  ///< of two that are there at once the earlier one counts
  };

  explicit Landings(PlaceId places) : at_(static_cast<std::size_t>(places)) {}

  void add(OpId op, Ticks until, const Operand& written, std::uint32_t length, int group,
           Ticks now) {
    Place& place = at_[static_cast<std::size_t>(written.place)];
    if (place.landings.size() >= place.forget_at) {
      std::erase_if(place.landings, [&](const Landing& one) { return one.until <= now; });
      place.forget_at = std::max(kLeastKept, 2 * place.landings.size());
    }
    place.longest = std::max(place.longest, length);
    const auto at = std::ranges::upper_bound(place.landings, key(written), {}, key_of);
    place.landings.insert(at, Landing{op, until, written, length, group, next_++});
  }

  /// Of what overlaps with an operand, that which is there last, and later than `now`; null where
  /// all of it is there.
  const Landing* last_of(const Operand& operand, std::uint32_t length, Ticks now) const {
    const Place& place = at_[static_cast<std::size_t>(operand.place)];
    if (place.landings.empty()) return nullptr;
    const std::uint64_t begin = key(operand);
    const std::uint64_t first = begin - std::min(operand.begin, place.longest);
    const Landing* last = nullptr;
    for (auto at = std::ranges::lower_bound(place.landings, first, {}, key_of);
         at != place.landings.end() && key_of(*at) < begin + length; ++at) {
      const Landing& one = *at;
      if (one.until <= now || !overlap(slice(one.written, one.length), slice(operand, length))) {
        continue;
      }
      const bool is_later = last == nullptr || one.until > last->until ||
                            (one.until == last->until && one.order < last->order);
      if (is_later) last = &one;
    }
    return last;
  }

 private:
  static constexpr std::size_t kLeastKept = 4;

  /// By buffer, then by place in it.
  static std::uint64_t key(const Operand& operand) {
    return static_cast<std::uint64_t>(operand.buffer) << 32 | operand.begin;
  }

  static std::uint64_t key_of(const Landing& one) { return key(one.written); }

  struct Place {
    std::vector<Landing> landings;  ///< by key; some of them may be there already
    std::uint32_t longest = 0;
    std::size_t forget_at = kLeastKept;  ///< so many landings, and those that are there go
  };
  std::vector<Place> at_;
  std::uint64_t next_ = 0;
};

}  // namespace espalier
