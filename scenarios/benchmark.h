// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/buildable.h"
#include "scenarios/study.h"

// Private to the room.

namespace espalier {

/// What nccl-tests would print for a simulated call, in seconds, under the query's launch mode.
/// `used` is the runtime that carried it out. \pre the outcome has been simulated
double benchmark_of(const Machine& machine, const Router& used, const Outcome& outcome);

/// By how much the simulated time is expected to be off.
ExpectedError error_of(const Machine& machine, const Router& used, const LinksUsed& links,
                       const Outcome& outcome);

}  // namespace espalier
