// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/program.h"
#include "run/report.h"

// What timelines show of rounds that were counted in (RepeatedRounds). Private to the room.

namespace espalier {

/// All the times that an op was counted in, one after the other.
struct CountedIn {
  double start_s = 0;  ///< of the first
  double end_s = 0;    ///< of the last
  double busy_s = 0;   ///< of all
  std::int64_t times = 0;
};
/// Nothing where the op is none of those that come again.
std::optional<CountedIn> counted_in(const RunReport& report, const OpTiming& timing);

/// "4082 rounds like the one before". \pre there are such
std::string counted_rounds(const RepeatedRounds& repeated);

/// What an op of a timeline does, in the units and dependencies of all rounds.
std::string op_text(const Program& program, const RunReport& report, OpId simulated);

}  // namespace espalier
