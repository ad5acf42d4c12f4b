// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// When every op of a simulation ran and what it waited for last.
struct OpHistory {
  std::vector<double> start_s;      ///< by op; kNever when it could not start
  std::vector<double> end_s;        ///< its lane is free again
  std::vector<double> seen_s;       ///< its result is where it belongs, and can be used there
  std::vector<OpId> cause;          ///< the op that let it start, or OpGraph::kNone
  std::vector<int> cause_group;     ///< of a folded program: so many groups further on
  std::vector<OpId> order;          ///< in which ops began, where lanes share blocks
  std::vector<OpId> without_steps;  ///< ops that wait for steps of their FIFO in vain
  std::int64_t transfers = 0;       ///< between places (see for_each_transfer)
  static constexpr double kNever = -1;
};

}  // namespace espalier
