// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/findings.h"
#include "ir/op_order.h"
#include "ir/program.h"

namespace espalier {

/// R6: reports every pair of consecutive accesses of a unit that nothing orders. Private to this
/// room. \pre `order` is run_order(program, lanes) and has every op.
void check_races(const Program& program, const LaneChains& lanes, const std::vector<OpId>& order,
                 Findings& findings);

}  // namespace espalier
