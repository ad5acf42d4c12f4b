// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/builder.h"
#include "probe/survey.h"

namespace espalier {

inline constexpr int kShortChain = 64;
inline constexpr int kLongChain = 320;
inline constexpr std::int64_t kTinyBytes = 4;
// A program moves at least so many bytes of a buffer, so that waiting for its start is a small part
// of its time.
inline constexpr std::int64_t kMinMoved = std::int64_t{4} << 20;
// What a clock may call nothing.
inline constexpr double kMinTime_s = 1e-9;

/// A copy between the ranks or, as kHost, from or to the host's memory.
inline constexpr int kHost = -1;
struct Way {
  int from = 0;
  int to = 0;
};

/// Makes the programs of a survey, and figures of their times, with one method of copying.
class Surveyor {
 public:
  Surveyor(const Inventory& inventory, const Meter& meter, CopyMethod method)
      : Surveyor(inventory, meter, method, meter.footprint_bytes) {}
  /// With so many bytes of a rank at work.
  Surveyor(const Inventory& inventory, const Meter& meter, CopyMethod method,
           std::int64_t footprint_bytes)
      : ranks_(inventory.ranks()),
        ranks_of_a_host_(inventory.ranks_of_a_host()),
        meter_(meter),
        method_(method),
        footprint_bytes_(footprint_bytes) {}

  /// Every way carries the message once, in pieces, all ways at a time. GB/s of all together, less
  /// what pieces that start after `latency_s` lose by it.
  double copy_gbps(const std::vector<Way>& ways, double latency_s) const {
    return copy_gbps(ways, latency_s, footprint_bytes_ / 2);
  }
  double copy_gbps(const std::vector<Way>& ways, double latency_s, std::int64_t bytes) const {
    const std::int64_t pieces = pieces_of(bytes);
    const std::int64_t passes = passes_of(bytes);
    Builder builder("copy", {.ranks = ranks_, .units = pieces});
    PlaceId host = 0;
    if (std::ranges::any_of(ways, [](Way way) { return way.from == kHost || way.to == kHost; })) {
      host = builder.add_host();
    }
    for (std::int64_t number = 0; number < passes * pieces; ++number) {
      const std::int64_t piece = number % pieces;
      for (std::size_t i = 0; i < ways.size(); ++i) {
        const Way way = ways[i];
        // Each direction has its half of the host's buffer.
        const Slice from =
            way.from == kHost ? builder.tmp(host, piece, 1) : builder.input(way.from, piece, 1);
        const Slice to = way.to == kHost ? builder.tmp(host, pieces + piece, 1)
                                         : builder.output(way.to, piece, 1);
        builder.copy(to, from,
                     {.lane = static_cast<int>(i), .at = way.from == kHost ? way.to : way.from});
      }
    }
    const double time_s = moving_s(time_of(builder.finish(), bytes), passes * pieces, latency_s);
    return static_cast<double>(passes * bytes) * static_cast<double>(ways.size()) / time_s * 1e-9;
  }

  /// GB/s that ranks get from each other when each of some sends a buffer to another one, again and
  /// again: what has arrived is what is sent next, as in a collective.
  double exchange_gbps(const std::vector<Way>& ways, double latency_s) const {
    const std::int64_t bytes = footprint_bytes_ / 2;
    const std::int64_t pieces = pieces_of(bytes);
    const std::int64_t passes = std::max<std::int64_t>(2, passes_of(bytes));
    Builder builder("exchange", {.ranks = ranks_, .units = pieces});
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      for (std::int64_t piece = 0; piece < pieces; ++piece) {
        const auto buffer = [&](int rank, bool is_first) {
          return is_first ? builder.tmp(rank, piece, 1) : builder.output(rank, piece, 1);
        };
        for (const Way way : ways) {
          builder.copy(buffer(way.to, pass % 2 != 0), buffer(way.from, pass % 2 == 0));
        }
      }
    }
    const double time_s = moving_s(time_of(builder.finish(), bytes), passes * pieces, latency_s);
    return static_cast<double>(passes * bytes) * static_cast<double>(ways.size()) / time_s * 1e-9;
  }

  /// Seconds for a byte of result when each of `ranks` combines `operands` of its own.
  double combine_s(const std::vector<int>& ranks, int operands, double latency_s) const {
    const std::int64_t bytes = footprint_bytes_ / (operands + 1);
    const std::int64_t pieces = pieces_of(bytes);
    const std::int64_t passes = passes_of(bytes);
    Builder builder("combine", {.ranks = ranks_, .units = pieces});
    for (std::int64_t number = 0; number < passes * pieces; ++number) {
      const std::int64_t piece = number % pieces;
      for (const int rank : ranks) {
        std::vector<Slice> sources{builder.input(rank, piece, 1)};
        for (int i = 0; i + 1 < operands; ++i) {
          sources.push_back(builder.tmp(rank, i * pieces + piece, 1));
        }
        builder.combine(builder.output(rank, piece, 1), sources);
      }
    }
    const double time_s = moving_s(time_of(builder.finish(), bytes), passes * pieces, latency_s);
    return time_s / static_cast<double>(passes * bytes) / static_cast<double>(ranks.size());
  }

  /// Seconds for a byte of all ranks together, when each adds what another one has just added up to
  /// something of its own: an exchange, and a combine of what is no longer in the caches as when a
  /// rank is by itself. Two steps of a ring, which are as many as need no further memory.
  double exchange_and_combine_s(int ranks, double latency_s) const {
    constexpr std::int64_t kSteps = 2;
    constexpr std::int64_t kBuffers = 5;  // input, output, scratch, and each step's arrivals
    const std::int64_t bytes = footprint_bytes_ / kBuffers;
    const std::int64_t pieces = pieces_of(bytes);
    Builder builder("exchange and combine", {.ranks = ranks_, .units = pieces});
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      for (int rank = 0; rank < ranks; ++rank) {
        const int from = (rank + 1) % ranks;
        builder.combine(builder.output(rank, piece, 1),
                        {builder.input(rank, piece, 1), builder.tmp(from, piece, 1)});
      }
    }
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      for (int rank = 0; rank < ranks; ++rank) {
        const int from = (rank + 1) % ranks;
        builder.combine(builder.tmp(rank, piece, 1),
                        {builder.input(rank, piece, 1), builder.output(from, piece, 1)});
      }
    }
    const double time_s = moving_s(time_of(builder.finish(), bytes), kSteps * pieces, latency_s);
    return time_s / static_cast<double>(kSteps * bytes) / static_cast<double>(ranks);
  }

  /// Of an op in a chain that runs to and fro between two places, or stays at one.
  double hop_latency_s(int rank, int other) const {
    return chain_latency_s(1, [&](Builder& builder, int ops) {
      const PlaceId host = other == kHost ? builder.add_host() : 0;
      const Slice here = builder.output(rank, 0, 1);
      const Slice there = other == kHost  ? builder.tmp(host, 0, 1)
                          : other == rank ? builder.tmp(rank, 0, 1)
                                          : builder.output(other, 0, 1);
      for (int op = 0; op < ops; ++op) {
        const bool forth = op % 2 == 0;
        const int at = forth || other == kHost ? rank : other;
        builder.copy(forth ? there : here, forth ? here : there, {.at = at});
      }
    });
  }

  /// Of a step round a ring of all ranks of a host, as in an allgather of hardly any bytes.
  double ring_latency_s() const {
    const int ranks = ranks_of_a_host_;
    return chain_latency_s(ranks, [&](Builder& builder, int steps) {
      for (int step = 0; step < steps; ++step) {
        for (int rank = 0; rank < ranks; ++rank) {
          const int to = (rank + 1) % ranks;
          const int unit = ((rank - step) % ranks + ranks) % ranks;
          builder.copy(builder.output(to, unit, 1), builder.output(rank, unit, 1));
        }
      }
    });
  }

  double combine_latency_s() const {
    return chain_latency_s(1, [](Builder& builder, int ops) {
      for (int op = 0; op < ops; ++op) {
        builder.combine(builder.output(0, 0, 1), {builder.output(0, 0, 1), builder.input(0, 0, 1)});
      }
    });
  }

 private:
  std::int64_t pieces_of(std::int64_t bytes) const {
    return std::max<std::int64_t>(1, bytes / meter_.piece_bytes);
  }

  static std::int64_t passes_of(std::int64_t bytes) {
    return std::max<std::int64_t>(1, kMinMoved / bytes);
  }

  /// What is left of a time without the starts of its pieces: no less than half of it, for
  /// latencies are measured too.
  static double moving_s(double time_s, std::int64_t pieces, double latency_s) {
    return std::max(time_s - static_cast<double>(pieces) * latency_s, time_s / 2);
  }

  double time_of(const Program& program, std::int64_t bytes) const {
    return std::max(kMinTime_s, meter_.time_s(program, bytes, method_));
  }

  /// Seconds of one step more of a chain that `fill` makes of so many, on a message of that many
  /// units.
  template <class Fill>
  double chain_latency_s(int units, const Fill& fill) const {
    const auto time_s = [&](int steps) {
      Builder builder("chain", {.ranks = ranks_, .units = units});
      fill(builder, steps);
      return time_of(builder.finish(), units * kTinyBytes);
    };
    const double more_s = time_s(kLongChain) - time_s(kShortChain);
    return std::max(0.0, more_s / (kLongChain - kShortChain));
  }

  int ranks_;
  int ranks_of_a_host_;
  const Meter& meter_;
  CopyMethod method_;
  std::int64_t footprint_bytes_;
};

}  // namespace espalier
