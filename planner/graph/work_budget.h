// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Private to the room.

namespace espalier {

/// What a search may cost. Steps are counted, not timed, so that a question has the same answer on
/// every computer, however busy. One step is about as much as looking at one link: some
/// nanoseconds.
class WorkBudget {
 public:
  explicit WorkBudget(std::int64_t steps) : left_(steps) {}

  void spend(std::int64_t steps) { left_ -= steps; }
  std::int64_t left() const { return left_; }
  bool is_spent() const { return left_ <= 0; }

 private:
  std::int64_t left_;
};

/// Of one packing by column generation: some ten seconds. No machine of the catalogue, alone or a
/// few of them together, comes near.
inline constexpr std::int64_t kMaxPackingWork = 2'000'000'000;

}  // namespace espalier
