// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>

#include "scenarios/asked_again.h"
#include "scenarios/training_study.h"

namespace espalier {

/// Timelines as Chrome trace events, for ui.perfetto.dev. \pre the runs kept timeline and program.

/// What an op is called.
using OpName = std::function<std::string(OpId)>;

/// A timeline as text, with at most so many ops: the longest, and of equally long ones the first.
/// Rounds that were counted in are a slice of each lane besides.
struct Trace {
  std::string json;
  std::size_t ops = 0;              ///< in it
  std::size_t left_out = 0;         ///< shorter ones
  std::size_t counted_in = 0;       ///< those of rounds that repeat themselves, one slice a lane
  std::string counted_rounds = {};  ///< "4082 rounds like the one before"; empty: none
};

inline constexpr std::size_t kAllOps = std::numeric_limits<std::size_t>::max();

/// The ops that a trace of so many has to be asked for.
inline TimelineOps traced_ops(std::size_t most_ops) {
  return most_ops == kAllOps ? TimelineOps::all : TimelineOps::all_groups;
}

/// As a file of that name holds it: compressed where that ends in ".gz".
std::string trace_file(const Trace& trace, const std::string& path);

/// Of one run: a process per place, a thread per lane; ops are called what they do, or as given.
Trace trace_of(const Outcome& outcome, std::size_t most_ops);
Trace trace_of(const Program& program, const RunReport& report, const OpName& name,
               std::size_t most_ops);

/// Of a prediction and what was measured: two processes, "predicted" and "measured", each with a
/// thread per place and lane, and with at most so many ops.
Trace comparison_trace(const Outcome& predicted, const Outcome& measured, std::size_t most_ops);

/// What the ops of an iteration of training are called: what they are part of, and of transfers
/// what they do. Refers to the outcome.
OpName training_op_name(const TrainingOutcome& outcome);
/// Of an iteration of training, whose ops are called after what they are part of.
Trace training_trace(const TrainingOutcome& outcome, std::size_t most_ops);

}  // namespace espalier
