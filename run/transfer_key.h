// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/hash.h"
#include "core/hash_numbers.h"
#include "ir/program.h"

namespace espalier {

/// Of transfers between two places by one way (an index into Program::vias, or -1): different for
/// different ones, and mixed, as regular keys would share buckets. Not installed.
inline std::uint64_t transfer_key(PlaceId from, PlaceId to, int via) {
  static_assert(kMaxPlaces <= 1 << 20);
  const auto bits = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  return mix64(bits(from) << 40 | bits(to) << 16 | static_cast<std::uint16_t>(via));
}

/// Transfers that were met. Where most of the places send to each other, they are too many to be
/// looked up by key one after the other. Not installed.
class SeenTransfers {
 public:
  explicit SeenTransfers(const Program& program)
      : places_(static_cast<std::size_t>(program.places())),
        pairs_(places_ <= kMostInPairs ? places_ * places_ : 0) {}

  /// Whether it had not been met; now it has.
  bool add(PlaceId from, PlaceId to, int via) {
    if (via >= 0 || pairs_.empty()) {
      const std::uint32_t known = others_.size();
      return others_.number(transfer_key(from, to, via)) == known;
    }
    auto pair = pairs_[static_cast<std::size_t>(from) * places_ + static_cast<std::size_t>(to)];
    const bool is_new = !pair;
    pair = true;
    return is_new;
  }

 private:
  static constexpr std::size_t kMostInPairs = 2048;  ///< half a megabyte

  const std::size_t places_;
  std::vector<bool> pairs_;  ///< between any two places; empty where they are too many
  HashNumbers others_;
};

/// Calls `visit(from, to)` for every transfer of an op and of what it is in the first `groups`
/// groups of a folded program, which answers whether the transfer had not been met: of one that
/// had, those of all groups had, as what moved another one onto it moved these, too.
template <class Visit>
void for_each_transfer_of_groups(const Program& program, const Op& op, int groups, Visit&& visit) {
  for_each_transfer(program, op, [&](PlaceId from, PlaceId to) {
    const Fold& fold = program.fold;
    const bool is_new = visit(from, to);
    for (int group = 1; is_new && group < groups; ++group) {
      visit(fold.rank_moved(from, group), fold.rank_moved(to, group));
    }
  });
}

}  // namespace espalier
