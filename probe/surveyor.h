// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "probe/survey.h"

namespace espalier {

/// Two chains of ops, of which the difference in time counts.
struct Lengths {
  int shorter = 0;
  int longer = 0;
};
inline constexpr Lengths kLocalChain{64, 320};
// Between ranks: where these share processors, an op may take a millisecond.
inline constexpr Lengths kChain{16, 80};
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

/// From each rank of a group to its next one, from the last to the first. A rank that is alone
/// sends nothing.
inline std::vector<Way> rings_of(const std::vector<std::vector<int>>& groups) {
  std::vector<Way> around;
  for (const std::vector<int>& ranks : groups) {
    if (ranks.size() < 2) continue;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      around.push_back({ranks[i], ranks[(i + 1) % ranks.size()]});
    }
  }
  return around;
}

/// Makes the programs of a survey, and figures of their times, with one method of copying.
class Surveyor {
 public:
  Surveyor(const Inventory& inventory, const Meter& meter, CopyMethod method)
      : Surveyor(inventory, meter, method, meter.footprint_bytes) {}
  /// With so many bytes of a rank at work.
  Surveyor(const Inventory& inventory, const Meter& meter, CopyMethod method,
           std::int64_t footprint_bytes)
      : ranks_(inventory.ranks()),
        meter_(meter),
        method_(method),
        footprint_bytes_(footprint_bytes) {}

  std::int64_t footprint_bytes() const { return footprint_bytes_; }

  /// Every way carries the message once, in pieces, all ways at a time. GB/s of all together, less
  /// what pieces lose by their `start_up`.
  double copy_gbps(const std::vector<Way>& ways, const StartUp& start_up) const {
    return copy_gbps(ways, start_up, footprint_bytes_ / 2);
  }
  double copy_gbps(const std::vector<Way>& ways, const StartUp& start_up,
                   std::int64_t bytes) const {
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
    const double time_s = moving_s(builder.finish(), {bytes, pieces, passes}, start_up);
    return static_cast<double>(passes * bytes) * static_cast<double>(ways.size()) / time_s * 1e-9;
  }

  /// GB/s that ranks get from each other when each of some sends a buffer to another one, again and
  /// again: what has arrived is what is sent next.
  double pass_on_gbps(const std::vector<Way>& ways, const StartUp& start_up) const {
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
    const double time_s = moving_s(builder.finish(), {bytes, pieces, passes}, start_up);
    return static_cast<double>(passes * bytes) * static_cast<double>(ways.size()) / time_s * 1e-9;
  }

  /// The same of a single buffer that goes there and comes back, so that one gets it at a time.
  double pass_to_and_fro_gbps(Way way, const StartUp& start_up) const {
    const std::int64_t passes = std::max<std::int64_t>(2, 2 * passes_of(footprint_bytes_));
    Builder builder("to and fro", {.ranks = ranks_, .units = 1});
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      const bool is_back = pass % 2 != 0;
      builder.copy(builder.output(is_back ? way.from : way.to, 0, 1),
                   builder.output(is_back ? way.to : way.from, 0, 1));
    }
    const double time_s = moving_s(builder.finish(), {footprint_bytes_, 1, passes}, start_up);
    return static_cast<double>(passes * footprint_bytes_) / time_s * 1e-9;
  }

  /// Seconds for a byte of result when each of `ranks` combines `operands` of its own.
  double combine_s(const std::vector<int>& ranks, int operands, const StartUp& start_up) const {
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
    const double time_s = moving_s(builder.finish(), {bytes, pieces, passes}, start_up);
    return time_s / static_cast<double>(passes * bytes) / static_cast<double>(ranks.size());
  }

  /// Seconds for a byte of all ranks together, when the end of each way adds what its beginning has
  /// just added up to something of its own: an exchange of what is fresh, and a combine. Two steps
  /// of rings, which are as many as need no further memory.
  double exchange_and_combine_s(const std::vector<Way>& around, const StartUp& start_up) const {
    constexpr std::int64_t kSteps = 2;
    constexpr std::int64_t kBuffers = 5;  // input, output, scratch, and each step's arrivals
    const std::int64_t bytes = footprint_bytes_ / kBuffers;
    const std::int64_t pieces = pieces_of(bytes);
    Builder builder("exchange and combine", {.ranks = ranks_, .units = pieces});
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      for (const auto [from, to] : around) {
        builder.combine(builder.output(to, piece, 1),
                        {builder.input(to, piece, 1), builder.tmp(from, piece, 1)});
      }
    }
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      for (const auto [from, to] : around) {
        builder.combine(builder.tmp(to, piece, 1),
                        {builder.input(to, piece, 1), builder.output(from, piece, 1)});
      }
    }
    const double time_s = moving_s(builder.finish(), {bytes, pieces, kSteps}, start_up);
    return time_s / static_cast<double>(kSteps * bytes) / static_cast<double>(around.size());
  }

  /// What each end of the ways gets, all at once. What is fresh takes what is left of fetching and
  /// adding it up without the latter, `combine_s`, and is never faster than what is not. `share`:
  /// how many times as many ranks are taken to do the same.
  ExchangeRates exchange_rates(const std::vector<Way>& around, double share,
                               const StartUp& start_up, double combine_latency_s,
                               double combine_s) const {
    StartUp combining = start_up;
    combining.add(combine_latency_s);
    ExchangeRates rates;
    rates.unchanged_gbps = share * copy_gbps(around, start_up);
    rates.passed_on_gbps = share * pass_on_gbps(around, start_up);
    const double both_s = exchange_and_combine_s(around, combining) / share;
    rates.gbps = 1e-9 / std::max(both_s - combine_s, 1e-9 / rates.unchanged_gbps);
    return rates;
  }

  /// Of an op in a chain that runs to and fro between two places, or stays at one.
  double hop_latency_s(int rank, int other) const {
    const bool is_local = other == rank || other == kHost;
    return chain_latency_s(1, is_local ? kLocalChain : kChain, [&](Builder& builder, int ops) {
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

  /// What a run takes beside its ops, which are a copy of every rank within its memory, all at
  /// once. Such a copy by itself takes `copy_latency_s`.
  double call_s(double copy_latency_s) const {
    Builder builder("call", {.ranks = ranks_, .units = 1});
    for (int rank = 0; rank < ranks_; ++rank) {
      builder.copy(builder.output(rank, 0, 1), builder.input(rank, 0, 1));
    }
    return std::max(0.0, time_of(builder.finish(), kTinyBytes) - copy_latency_s);
  }

  /// Of a step round rings, all at once, as in an allgather of hardly any bytes.
  double ring_latency_s(const std::vector<Way>& around) const {
    const int units = static_cast<int>(around.size());
    return chain_latency_s(units, kChain, [&](Builder& builder, int steps) {
      std::vector<int> held(static_cast<std::size_t>(ranks_));  // unit that a rank sends on
      for (int i = 0; i < units; ++i) held[number_of(around[number_of(i)].from)] = i;
      for (int step = 0; step < steps; ++step) {
        std::vector<int> arrived = held;
        for (const auto [from, to] : around) {
          const int unit = held[number_of(from)];
          builder.copy(builder.output(to, unit, 1), builder.output(from, unit, 1));
          arrived[number_of(to)] = unit;
        }
        held = std::move(arrived);
      }
    });
  }

  /// Seconds that messages of this length take to start, when every way carries one after the
  /// other: two of them take as much longer than one of both.
  double start_up_s(const std::vector<Way>& ways, std::int64_t bytes) const {
    constexpr int kHalves = 2;
    const auto time_s = [&](int messages) {
      const int length = kHalves / messages;
      const auto fill = [&](Builder& builder, int steps) {
        for (int op = 0; op < steps * messages; ++op) {
          for (std::size_t i = 0; i < ways.size(); ++i) {
            const int unit = kHalves * static_cast<int>(i) + op % messages * length;
            builder.copy(builder.output(ways[i].to, unit, length),
                         builder.input(ways[i].from, unit, length));
          }
        }
      };
      return chain_time_s(kHalves * static_cast<int>(ways.size()), bytes, kChain, fill);
    };
    return std::max(0.0, time_s(kHalves) - time_s(1));
  }

  double combine_latency_s() const {
    return chain_latency_s(1, kLocalChain, [](Builder& builder, int ops) {
      for (int op = 0; op < ops; ++op) {
        builder.combine(builder.output(0, 0, 1), {builder.output(0, 0, 1), builder.input(0, 0, 1)});
      }
    });
  }

 private:
  static std::size_t number_of(int one) { return static_cast<std::size_t>(one); }

  std::int64_t pieces_of(std::int64_t bytes) const {
    return std::max<std::int64_t>(1, bytes / meter_.piece_bytes);
  }

  static std::int64_t passes_of(std::int64_t bytes) {
    return std::max<std::int64_t>(1, kMinMoved / bytes);
  }

  /// A message that goes in pieces, one after the other, several times over.
  struct Moved {
    std::int64_t bytes = 0;
    std::int64_t pieces = 1;
    std::int64_t passes = 1;
  };

  /// What is left of a program's time without the starts of its pieces: no less than half of it,
  /// for latencies are measured too.
  double moving_s(const Program& program, const Moved& moved, const StartUp& start_up) const {
    const double time_s = time_of(program, moved.bytes);
    const double piece_bytes = static_cast<double>(moved.bytes) / static_cast<double>(moved.pieces);
    const double starts_s =
        static_cast<double>(moved.passes * moved.pieces) * start_up.of(piece_bytes);
    return std::max(time_s - starts_s, time_s / 2);
  }

  double time_of(const Program& program, std::int64_t bytes) const {
    return std::max(kMinTime_s, meter_.time_s(program, bytes, method_));
  }

  /// Of steps that move hardly any bytes.
  template <class Fill>
  double chain_latency_s(int units, Lengths lengths, const Fill& fill) const {
    return chain_time_s(units, kTinyBytes, lengths, fill);
  }

  /// Seconds of one step more of a chain that `fill` makes of so many, on a message of that many
  /// units.
  template <class Fill>
  double chain_time_s(int units, std::int64_t unit_bytes, Lengths lengths, const Fill& fill) const {
    const auto time_s = [&](int steps) {
      Builder builder("chain", {.ranks = ranks_, .units = units});
      fill(builder, steps);
      return time_of(builder.finish(), units * unit_bytes);
    };
    const double more_s = time_s(lengths.longer) - time_s(lengths.shorter);
    return std::max(0.0, more_s / (lengths.longer - lengths.shorter));
  }

  int ranks_;
  const Meter& meter_;
  CopyMethod method_;
  std::int64_t footprint_bytes_;
};

}  // namespace espalier
