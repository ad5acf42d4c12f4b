// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "ir/program.h"
#include "run/report.h"

// What timelines show of rounds that were counted in (RepeatedRounds). Private to the room.

namespace espalier {

/// All the times that an op was counted in: between when its lane begins the first of these rounds,
/// and when it is done with the last.
struct CountedIn {
  double start_s = 0;
  double end_s = 0;
  double busy_s = 0;  ///< it keeps its lane so long, all times together
  std::int64_t times = 0;
};

/// What was counted in of a run that kept its timeline.
class CountedOps {
 public:
  /// Refers to its arguments.
  CountedOps(const Program& program, const RunReport& report);

  /// Nothing where the op is none of those that come again.
  std::optional<CountedIn> of(const OpTiming& timing) const;

 private:
  using Lane = std::pair<PlaceId, int>;
  bool comes_again(const OpTiming& timing) const;

  const Program& program_;
  const RepeatedRounds* const repeated_;
  std::map<Lane, double> first_s_;  ///< when its ops that come again begin
};

/// "4082 rounds like the one before". \pre there are such
std::string counted_rounds(const RepeatedRounds& repeated);

/// What an op of a timeline does, in the units and dependencies of all rounds.
std::string op_text(const Program& program, const RunReport& report, OpId simulated);

}  // namespace espalier
