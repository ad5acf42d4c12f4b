// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "ir/program.h"
#include "run/backend.h"

namespace espalier {

/// A chunk size and what the simulator says about it.
struct ChunkChoice {
  std::int64_t chunk_bytes = 0;  ///< 0: not cut
  std::string note = {};         ///< why it may not be the best, if so
  double time_s = 0;
  double algbw_gbps = 0;
};

/// Whatever something takes, it is of interest.
inline constexpr double kAnyTime = std::numeric_limits<double>::infinity();
/// Times that differ by less are the same: the simulator promises no more.
inline constexpr double kSameTime = 1e-9;
inline bool shorter(double a_s, double b_s) { return a_s < b_s * (1 - kSameTime); }

/// Why chunks of at most this many bytes were not tried.
std::string chunk_note_too_costly(std::int64_t piece_bytes);
std::string chunk_note_no_time(std::int64_t piece_bytes);
/// Pieces are larger where a program would have more ops than this. Where a chunk size was asked
/// for, fewer: some seconds to verify and simulate, or a few pieces for every op of the uncut one.
std::int64_t max_ops_when_cut(std::int64_t uncut_ops, bool is_asked);
inline constexpr std::int64_t kAnyOps = std::numeric_limits<std::int64_t>::max();
/// Why pieces are larger than those asked for; `used_bytes` 0: nothing was cut.
std::string chunk_note_raised(std::int64_t asked_bytes, std::int64_t used_bytes,
                              std::int64_t max_ops);

/// Simulates with chunks of at most this many bytes (0: whole messages) until a limit is reached.
using SimulatePieces = std::function<RunReport(std::int64_t chunk_bytes, const SimLimits& limits)>;

/// What is to be cut.
struct ChunkQuestion {
  std::int64_t message_bytes = 0;
  double longest_share = 0;     ///< the longest transfer, as part of the message
  std::int64_t max_work = 0;    ///< of all simulations with pieces together (see SimLimits)
  double at_most_s = kAnyTime;  ///< slower ones are of no interest
  /// The same where the best time is to be found if it is no slower: nothing is abandoned for it,
  /// but the search ends, with what it has, once it is out of reach.
  double worthwhile_s = kAnyTime;
  /// What it takes at least with pieces of at most so many bytes; the smaller, the longer.
  std::function<double(std::int64_t chunk_bytes)> least_s = [](std::int64_t) { return 0.0; };
};

/// Whether any pieces are tried: they would not be too small.
bool is_cuttable(const ChunkQuestion& question);

/// The best of whole transfers, halves, quarters and so on. Ends when chunks
/// get no better, or would not by the curve through the times so far, or too small, or when the
/// work is spent, or when a simulation would take longer, as those so far did, than there is time
/// (see TimeLimit). A simulation slower than the best one is abandoned, which does not change the
/// result. The time is infinite where none takes at most `at_most_s`.
ChunkChoice search_chunk(const ChunkQuestion& question, const SimulatePieces& simulate);

}  // namespace espalier
