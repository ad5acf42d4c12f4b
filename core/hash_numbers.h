// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace espalier {

/// Numbers things from 0, in the order in which they first come. It knows their hashes alone, in
/// one piece of memory; who asks keeps what is numbered. Hashes are mixed (mix64): regular ones
/// would share slots. Not installed.
class HashNumbers {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// The number of what has the hash and of which `is_same(number)`; where there is no such thing,
  /// it is new, and its number the size before.
  template <class IsSame>
  std::uint32_t number(std::uint64_t hash, IsSame&& is_same) {
    if (2 * std::size_t{size_} >= slots_.size()) grow();
    Slot& slot = slots_[slot_of(hash, is_same)];
    if (slot.number == kNone) slot = {hash, size_++};
    return slot.number;
  }
  /// The same where a hash tells a thing apart from all others.
  std::uint32_t number(std::uint64_t hash) { return number(hash, kAny); }

  /// kNone: it never came.
  std::uint32_t find(std::uint64_t hash) const {
    return slots_.empty() ? kNone : slots_[slot_of(hash, kAny)].number;
  }
  std::uint32_t size() const { return size_; }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t number = kNone;
  };
  static constexpr auto kAny = [](std::uint32_t) { return true; };

  /// Where it is, or would be.
  template <class IsSame>
  std::size_t slot_of(std::uint64_t hash, IsSame&& is_same) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].number != kNone && !(slots_[at].hash == hash && is_same(slots_[at].number))) {
      at = (at + 1) & mask;
    }
    return at;
  }
  void grow() {
    std::vector<Slot> smaller(slots_.empty() ? kFewest : 2 * slots_.size());
    smaller.swap(slots_);
    const auto nobody = [](std::uint32_t) { return false; };
    for (const Slot& slot : smaller) {
      if (slot.number != kNone) slots_[slot_of(slot.hash, nobody)] = slot;
    }
  }

  static constexpr std::size_t kFewest = 16;
  std::vector<Slot> slots_;  ///< a power of two of them, half of them free
  std::uint32_t size_ = 0;
};

}  // namespace espalier
