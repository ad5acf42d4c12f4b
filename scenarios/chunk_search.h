// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "run/backend.h"

namespace espalier {

/// A chunk size and what the simulator says about it.
struct ChunkChoice {
  std::int64_t chunk_bytes = 0;  ///< 0: not cut
  std::string note = {};         ///< why it may not be the best, if so
  double time_s = 0;
  double algbw_gbps = 0;
};

/// Times that differ by less are the same: the simulator promises no more.
inline constexpr double kSameTime = 1e-9;
inline bool shorter(double a_s, double b_s) { return a_s < b_s * (1 - kSameTime); }

/// Why pieces of so many bytes and less were not tried.
std::string chunk_note_too_costly(std::int64_t piece_bytes);

/// Simulates with pieces of at most so many bytes, 0: whole, until a limit is reached.
using SimulatePieces = std::function<RunReport(std::int64_t chunk_bytes, const SimLimits& limits)>;

/// What is to be cut.
struct ChunkQuestion {
  std::int64_t message_bytes = 0;
  double longest_share = 0;   ///< the longest transfer, as part of the message
  std::int64_t max_work = 0;  ///< of all simulations with pieces together (see SimLimits)
};

/// The best of whole transfers, halves, quarters and so on. Ends where pieces get no better, too
/// small, or where the work is spent. A simulation slower than the best one is given up, which
/// changes no outcome.
ChunkChoice search_chunk(const ChunkQuestion& question, const SimulatePieces& simulate);

}  // namespace espalier
