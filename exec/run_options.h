// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "run/backend.h"

namespace espalier {

/// Throws Error{usage} with everything in the options
/// that makes no sense for an executing back end.
void require_sane(const RunOptions& options);

/// Mean, median, minimum and maximum of the timed runs. \pre there is one, and
/// the report has its executed part
void note_times(RunReport& report, std::span<const double> times_s);

}  // namespace espalier
