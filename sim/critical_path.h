// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "run/report.h"
#include "sim/op_history.h"
#include "sim/op_names.h"

namespace espalier {

/// A longer path keeps its latest steps only; the first of them still names the op it waited for.
inline constexpr std::size_t kMaxCriticalSteps = 4096;

/// Fills in the report's chain of ops that decided the time: the op whose result was there
/// last, the one that let it start, and so on back to one that waited for nothing. A step ends when
/// the next one starts, so that steps follow each other without gaps.
void report_critical_path(const Program& program, const OpNames& names, const OpHistory& history,
                          SimulatedPart& simulated);

}  // namespace espalier
