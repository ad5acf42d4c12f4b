// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "scenarios/training_study.h"

namespace espalier {

/// Timelines as Chrome trace events, for ui.perfetto.dev. \pre the runs kept timeline and program.

/// What an op is called.
using OpName = std::function<std::string(OpId)>;

/// Of one run: a process per place, a thread per lane; ops are called what they do, or as given.
std::string trace_json(const Outcome& outcome);
std::string trace_json(const Program& program, const RunReport& report, const OpName& name);

/// Of a prediction and what was measured: two processes, "predicted" and "measured", each with a
/// thread per place and lane.
std::string comparison_trace_json(const Outcome& predicted, const Outcome& measured);

/// What the ops of an iteration of training are called: what they are part of, and of transfers
/// what they do. Refers to the outcome.
OpName training_op_name(const TrainingOutcome& outcome);
/// Of an iteration of training, whose ops are called after what they are part of.
std::string training_trace(const TrainingOutcome& outcome);

}  // namespace espalier
