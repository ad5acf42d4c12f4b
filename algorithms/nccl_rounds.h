// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

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
    const double parts = static_cast<double>(channels_) * shares;
    const double chunks = work.chunk_bytes > 0 ? std::ceil(bytes / work.chunk_bytes) : 0;
    const double wanted = kUnitsOfChunk * std::max(parts, chunks);
    // Every rank's share has a unit, be it a part of an element: blocks go through all steps.
    const double most =
        std::max(parts, std::min(kMostUnits / shares, std::ceil(bytes / kElementBytes)));
    units_ = static_cast<std::int64_t>(std::max(1.0, std::min(wanted, most)));
    const double unit_bytes = std::max(bytes, 1.0) / static_cast<double>(units_);
    const auto in_units = [&](double of_bytes) {
      return std::max<std::int64_t>(1, std::llround(of_bytes / unit_bytes));
    };
    full_ = work.chunk_bytes > 0 ? in_units(work.chunk_bytes) : units_;
    align_bytes_ = work.align_bytes;
    unit_bytes_ = unit_bytes;
  }

  std::int64_t units() const { return units_; }

  /// Calls visit(channel, first, length) for every round and channel: of the round's units, from
  /// `first` on each share has `length`, until the stretch is at its end.
  template <class Visit>
  void for_each(const Visit& visit) const {
    const std::int64_t parts = static_cast<std::int64_t>(channels_) * shares_;
    for (std::int64_t position = 0; position < units_;) {
      const std::int64_t rest = units_ - position;
      std::int64_t length = full_;
      if (rest < full_ * parts) {
        const double bytes = static_cast<double>(rest) * unit_bytes_ / static_cast<double>(parts);
        // What leaves most ranks' shares empty is divided among all: they are passed on all the
        // same.
        const bool is_rounded =
            static_cast<double>(rest) * unit_bytes_ >= static_cast<double>(shares_) * align_bytes_;
        const double aligned =
            is_rounded ? std::ceil(bytes / align_bytes_ * kAlmostOne) * align_bytes_ : bytes;
        const auto rounded =
            static_cast<std::int64_t>(std::ceil(aligned / unit_bytes_ * kAlmostOne));
        length = std::clamp<std::int64_t>(rounded, (rest + parts - 1) / parts, full_);
      }
      for (int channel = 0; channel < channels_; ++channel) {
        const std::int64_t first = position + channel * shares_ * length;
        if (first < units_) visit(channel, first, length);
      }
      position += parts * length;
    }
  }

 private:
  /// A chunk has about so many units, so that the shorter ones of the last round come out right.
  static constexpr double kUnitsOfChunk = 32;
  static constexpr double kMostUnits = 1 << 20;
  /// What divides exactly must not look a little too large.
  static constexpr double kAlmostOne = 1 - 1e-4;
  /// An element has at least so many bytes.
  static constexpr double kElementBytes = 4;

  int channels_;
  std::int64_t shares_;
  std::int64_t units_ = 1;
  std::int64_t full_ = 1;
  double align_bytes_ = 1;
  double unit_bytes_ = 1;
};

}  // namespace espalier
