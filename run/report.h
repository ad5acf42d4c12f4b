// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"

namespace espalier {

struct OpTiming {
  OpId op = 0;
  double start_s = 0;
  double end_s = 0;      ///< its lane is free again
  double landing_s = 0;  ///< from then until its result is where it belongs; known to simulations
};

struct LinkUse {
  std::string name;  ///< "gpu0->gpu3 nvlink2", or "a<->b" when both directions share it
  double bytes = 0;
  double busy_s = 0;       ///< bytes / capacity
  double utilization = 0;  ///< busy_s / time_s
  bool is_link =
      true;       ///< false for a node's memory or arithmetic, which is counted in the same way
  int alike = 1;  ///< how many there are that carry the same, of groups of ranks that behave alike
};

/// Rounds that were counted in and not simulated (RunOptions::more_rounds). Of the ops that were
/// simulated, those of some rounds come again, `times` times, before what follows these rounds
/// does.
struct RepeatedRounds {
  OpId begin = 0;           ///< of those that come again, the first
  OpId end = 0;             ///< and what follows them
  std::int64_t rounds = 1;  ///< that these are
  std::int64_t times = 0;
  std::uint32_t units = 0;       ///< so many further on each time, of the message or of each block
  std::vector<double> period_s;  ///< so much later each time, by op from `begin` on

  OpId ops() const { return end - begin; }
  OpId left_out() const { return static_cast<OpId>(times) * ops(); }
  /// The number that an op would have if all rounds were simulated.
  OpId number(OpId simulated) const { return simulated < end ? simulated : simulated + left_out(); }

  /// What an op of all rounds is like: one that was simulated, how many times later, and how many
  /// ops and units further on.
  struct Like {
    OpId simulated = 0;
    OpId again = 0;
    OpId ops_on = 0;
    std::uint32_t units_on = 0;
  };
  Like like(OpId number) const {
    if (number < end) return {number};
    const bool is_left_out = number - end < left_out();
    const OpId again = is_left_out ? (number - end) / ops() + 1 : static_cast<OpId>(times);
    const OpId ops_on = again * ops();
    return {number - ops_on, again, ops_on, again * units};
  }
  /// By how much all rounds make a block, or the message, longer.
  std::int64_t units_longer() const { return times * units; }
};

/// One step of the critical path.
struct CriticalStep {
  OpId op = 0;  ///< as the program with all its rounds numbers it
  double start_s = 0;
  double end_s = 0;
  std::string what;        ///< "r1.out[0] <- r1.in[0] + r0.in[0]"
  std::string waited_for;  ///< "data of op 3", "lane 0 of r1", "start"
};

/// How a simulation ended (see SimLimits). Without limits, one that gets stuck is an error.
/// `unsteady`: see RunOptions::more_rounds.
enum class SimEnd : std::uint8_t { finished, too_slow, too_costly, stuck, unsteady };

/// What a simulation made of lanes that behave alike: it did not look for any, as that was not
/// allowed or would not have been worth it; it found few; or it simulated one of each kind in
/// place of all.
enum class AlikeLanes : std::uint8_t { not_looked_for, few, one_simulated };

/// What only a simulation knows.
struct SimulatedPart {
  std::string engine;  ///< the one that was used
  /// With limits only. An abandoned simulation has no figures except its work.
  SimEnd end = SimEnd::finished;
  std::int64_t work = 0;
  std::string stuck;  ///< of a simulation that got stuck: which op waits for what
  /// From one call to the next where they follow each other without waiting, as a benchmark makes
  /// them; what launching them costs the host is left out. Where a program is no call, its time.
  double back_to_back_s = 0;
  /// Of a call by itself whose ranks all begin at once; RunReport::time_s unless they do not.
  double together_s = 0;
  /// Where one was simulated, of links that carry the same one is listed.
  AlikeLanes alike_lanes = AlikeLanes::not_looked_for;
  int blocks =
      0;  ///< that carry out the program on the GPU that needs most; 0: the profile has none
  double busiest_s = 0;        ///< the longest that a link, memory or arithmetic is busy
  double busiest_link_s = 0;   ///< of links alone
  std::vector<LinkUse> links;  ///< where they are to be listed (RunOptions::details)
  /// In order of time; of a long path only the end. None where nobody looks at it
  /// (RunOptions::details), or lanes were simulated in place of others (only_times).
  std::vector<CriticalStep> critical_path;
  std::int64_t critical_steps = 0;  ///< of the whole path
  /// Where rounds were counted in and ops are named: RunReport::timeline has those that were
  /// simulated.
  std::optional<RepeatedRounds> repeated = {};
};

/// What only an execution knows.
struct ExecutedPart {
  double min_time_s = 0;  ///< of one run
  double max_time_s = 0;
  double median_time_s = 0;  ///< for an even number of runs, the mean of the middle two
  /// From the beginning of a run to that of the next one, in the mean, with all that is between;
  /// 0: not known.
  double interval_s = 0;
  std::vector<double> rank_times_s;   ///< mean of a run, by rank, where each has a clock of its own
  std::optional<std::int64_t> wrong;  ///< wrong elements, where they were checked
  std::vector<std::string> damage;    ///< of these, what was overwritten beside the results
  std::vector<std::string> notes;     ///< where and how it was executed, a line each
};

/// What a back end reports about a run. One of the two parts is present.
struct RunReport {
  double time_s = 0;               ///< of one run; the mean over iterations when executed
  std::int64_t message_bytes = 0;  ///< after rounding to whole elements and blocks
  std::int64_t transfers = 0;      ///< between different places
  std::vector<OpTiming> timeline;  ///< when asked for
  double wall_s = 0;               ///< time that the back end itself took
  std::optional<SimulatedPart> simulated = {};
  std::optional<ExecutedPart> executed = {};

  double algbw_gbps() const {
    return time_s > 0 ? static_cast<double>(message_bytes) / time_s * 1e-9 : 0;
  }
  /// Null where all rounds were simulated, and for executions.
  const RepeatedRounds* repeated() const {
    return simulated && simulated->repeated ? &*simulated->repeated : nullptr;
  }
  /// The number of an op of the timeline in the program with all its rounds.
  OpId number(OpId op) const { return repeated() == nullptr ? op : repeated()->number(op); }
  /// Number of elements known to be wrong; also 0 if nothing was checked.
  std::int64_t wrong_elements() const { return executed ? executed->wrong.value_or(0) : 0; }
};

}  // namespace espalier
