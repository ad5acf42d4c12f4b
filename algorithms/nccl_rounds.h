// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "core/check.h"
#include "ir/fold.h"
#include "nccl/work.h"

// How NCCL's kernels go through a message. Private to the room.

namespace espalier {

/// How a stretch of the message (all of it, or a rank's block) is divided among channels and
/// rounds: a round moves one chunk of every channel, and of every share in it; the last round has
/// shorter ones.
class NcclRounds {
 public:
  /// `bytes` of the stretch; `shares` of a channel's chunk in a round: one for every rank, or for
  /// every head of a node, or 1.
  NcclRounds(double bytes, const NcclWork& work, int shares)
      : channels_(work.channels), shares_(shares) {
    const double parts = static_cast<double>(parts_of_round());
    const double chunks = work.chunk_bytes > 0 ? std::ceil(bytes / work.chunk_bytes) : 0;
    const double wanted = kUnitsOfChunk * std::max(parts, chunks);
    // Every rank's share has a unit, be it a part of an element: blocks go through all steps.
    const double most =
        std::max(parts, std::min(kMostUnits / shares, std::ceil(bytes / kElementBytes)));
    units_ = static_cast<std::int64_t>(std::max(1.0, std::min(wanted, most)));
    unit_bytes_ = std::max(bytes, 1.0) / static_cast<double>(units_);
    const auto in_units = [&](double of_bytes) {
      return std::max<std::int64_t>(1, std::llround(of_bytes / unit_bytes_));
    };
    full_ = work.chunk_bytes > 0 ? in_units(work.chunk_bytes) : units_;
    const std::int64_t rest = units_ % (full_ * parts_of_round());
    if (rest > 0) last_ = length_of_last(rest, unit_bytes_, work.align_bytes);
  }

  /// With a last round of which every share has as much as the others, but for the bytes that NCCL
  /// rounds shares up by (`ncclCollCbdPart` of src/include/device.h gives every channel one part).
  /// `cuts`: into so many parts a chunk may be cut.
  static NcclRounds in_equal_shares(double bytes, const NcclWork& work, int shares, int cuts = 1) {
    NcclRounds made(work.channels, shares);
    const double round_bytes = work.chunk_bytes * static_cast<double>(made.parts_of_round());
    const double full_rounds = round_bytes > 0 ? std::floor(bytes / round_bytes * kOverOne) : 0;
    const double rest = round_bytes > 0 ? std::max(0.0, bytes / round_bytes - full_rounds) : 1;
    const bool has_rest = full_rounds == 0 || rest > kSmallestPart;
    if (full_rounds == 0) {
      made.full_ = 1;
      made.last_ = 1;
    } else if (has_rest) {
      std::tie(made.last_, made.full_) = as_ratio(rest, kExact * (full_rounds + 1));
    }
    made.full_ *= cuts;
    made.last_ *= cuts;
    const auto of_part = static_cast<std::int64_t>(full_rounds) * made.full_ + made.last_;
    made.units_ = of_part * made.parts_of_round();
    made.unit_bytes_ = std::max(bytes, 1.0) / static_cast<double>(made.units_);
    return made;
  }

  std::int64_t units() const { return units_; }
  double unit_bytes() const { return unit_bytes_; }

  /// Those that move whole chunks.
  std::int64_t full_rounds() const { return units_ / (full_ * parts_of_round()); }

  /// The same without so many of the full rounds. \pre there are more
  NcclRounds without(std::int64_t rounds) const {
    CHECK(rounds == 0 || rounds < full_rounds());
    NcclRounds less = *this;
    less.units_ -= rounds * full_ * parts_of_round();
    return less;
  }

  /// How often `for_each` visits.
  std::int64_t visits() const {
    const std::int64_t of_round = full_ * parts_of_round();
    return (units_ + of_round - 1) / of_round * channels_;
  }

  /// How units are turned where the shares of `groups` channels and heads are those of as many
  /// groups of a fold. \pre in equal shares, whose number in a round `groups` divides
  Fold::Turns turns(int groups) const {
    const auto turn_of = [&](std::int64_t length) {
      return Fold::Turn{.period = groups * length, .step = length};
    };
    const std::int64_t rest_begin = units_ - last_ * parts_of_round();
    if (last_ == 0 || last_ == full_) return {.most = turn_of(full_)};
    if (rest_begin == 0) return {.most = turn_of(last_)};
    return {.most = turn_of(full_), .rest_begin = rest_begin, .rest = turn_of(last_)};
  }

  /// Calls visit(channel, first, length) for every round and channel: of the round's units, from
  /// `first` on each share has `length`, until the stretch is at its end.
  template <class Visit>
  void for_each(const Visit& visit) const {
    const std::int64_t parts = parts_of_round();
    for (std::int64_t position = 0; position < units_;) {
      const std::int64_t length = units_ - position >= full_ * parts ? full_ : last_;
      for (int channel = 0; channel < channels_; ++channel) {
        const std::int64_t first = position + channel * shares_ * length;
        if (first < units_) visit(channel, first, length);
      }
      position += parts * length;
    }
  }

  /// The same, but of the full rounds visits the first one only, and then calls again(units, times)
  /// for the others, each so many units further on.
  template <class Visit, class Again>
  void for_each(const Visit& visit, const Again& again) const {
    const std::int64_t full_units = full_ * parts_of_round();
    for_each([&](int channel, std::int64_t first, std::int64_t length) {
      const std::int64_t round = first / full_units;
      if (round > 0 && round < full_rounds()) {
        if (round == 1 && channel == 0) again(full_units, full_rounds() - 1);
        return;
      }
      visit(channel, first, length);
    });
  }

 private:
  /// A chunk has about so many units, so that the shorter ones of the last round come out right.
  static constexpr double kUnitsOfChunk = 32;
  static constexpr double kMostUnits = 1 << 20;
  /// What divides exactly must not look a little too large, or too small.
  static constexpr double kAlmostOne = 1 - 1e-4;
  static constexpr double kOverOne = 1 + 1e-9;
  /// A last round with less than this part of a full one is no round.
  static constexpr double kSmallestPart = 1e-6;
  /// Of the message, by how much the last round may be too long or too short.
  static constexpr double kExact = 1e-3;
  /// An element has at least so many bytes.
  static constexpr double kElementBytes = 4;

  NcclRounds(int channels, int shares) : channels_(channels), shares_(shares) {}

  std::int64_t parts_of_round() const { return static_cast<std::int64_t>(channels_) * shares_; }

  /// Of every share, in units: `rest` are left.
  std::int64_t length_of_last(std::int64_t rest, double unit_bytes, double align_bytes) const {
    const std::int64_t parts = parts_of_round();
    const double bytes = static_cast<double>(rest) * unit_bytes / static_cast<double>(parts);
    // What leaves most ranks' shares empty is divided among all: they are passed on all the same.
    const bool is_rounded =
        static_cast<double>(rest) * unit_bytes >= static_cast<double>(shares_) * align_bytes;
    const double aligned =
        is_rounded ? std::ceil(bytes / align_bytes * kAlmostOne) * align_bytes : bytes;
    const auto rounded = static_cast<std::int64_t>(std::ceil(aligned / unit_bytes * kAlmostOne));
    return std::clamp<std::int64_t>(rounded, (rest + parts - 1) / parts, full_);
  }

  /// A part of a whole in few units: how many it has, and the whole. `exact`: to this part of it.
  static std::pair<std::int64_t, std::int64_t> as_ratio(double part, double exact) {
    constexpr std::int64_t kMost = 64;
    std::pair<std::int64_t, std::int64_t> best = {1, 1};
    double least = std::abs(part - 1);
    for (std::int64_t whole = 1; whole <= kMost && least > exact; ++whole) {
      const double units = std::clamp(std::round(part * static_cast<double>(whole)), 1.0,
                                      static_cast<double>(whole));
      const double off = std::abs(part - units / static_cast<double>(whole));
      if (off >= least) continue;
      least = off;
      best = {static_cast<std::int64_t>(units), whole};
    }
    return best;
  }

  int channels_;
  std::int64_t shares_;
  std::int64_t units_ = 1;
  double unit_bytes_ = 1;
  std::int64_t full_ = 1;  ///< of a share, in units
  std::int64_t last_ = 0;  ///< in the last round; 0: all are full
};

}  // namespace espalier
