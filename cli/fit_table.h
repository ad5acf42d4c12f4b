// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/console.h"
#include "scenarios/fit_logs.h"

namespace espalier {

/// Prints what was fitted: the constants, those that keep their values and why, the times of every
/// table before and after, and how far these are off.
void print_fit(const Console& console, const ProfileFit& fit, const FitRequest& request,
               const FitLogs& logs);

}  // namespace espalier
