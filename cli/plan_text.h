// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/console.h"
#include "scenarios/planned.h"

namespace espalier {

/// How much of a large plan is shown.
struct PlanView {
  int trees = 8;
  int links = 16;
};

/// Rate, bound and certificate, the heaviest trees as text, the busiest links as bars, and which
/// links are idle.
void print_plan(const Console& console, const Planned& planned, const PlanView& view);

}  // namespace espalier
