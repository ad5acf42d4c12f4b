// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/simulation.h"

namespace espalier {

/// Where nobody asks for single ops, and all ranks begin together.
bool may_be_of_kinds(const Simulation& of, const std::vector<double>& starts_s);

struct SimulatedKinds {
  SimulationOutcome outcome;  ///< with the history of one of each kind
  std::int64_t work = 0;
  AlikeLanes alike_lanes = AlikeLanes::one_simulated;
};

/// Simulates one lane of each kind (LaneKinds), unless it is certain beforehand to be too slow.
/// Nothing where few are alike, or where ops wait for ever: to say which ones, all have to be
/// simulated. \pre may_be_of_kinds
std::optional<SimulatedKinds> simulate_kinds(const Simulation& of);

}  // namespace espalier
