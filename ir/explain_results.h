// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ir/cell_map.h"
#include "ir/findings.h"
#include "ir/program.h"

namespace espalier {

/// A cell of a result that is not what it should be.
struct WrongResult {
  int rank = 0;
  std::uint64_t cell = 0;         ///< of the program
  std::uint64_t result_cell = 0;  ///< of the rank's output region
  int origin_rank = -1;           ///< whose input it should hold; -1: that of every rank, combined
  std::uint64_t origin_cell = 0;  ///< which cell of that input
  bool written = true;
};

/// R7: reports what is missing from each wrong result, repeated in it or foreign to it. Found by
/// counting the inputs that went into it, so that the sentence is exact however the fault was
/// found. Private to this room. \pre every op is in `order`, an order that can run.
void explain_results(const Program& program, const CellMap& cells, const std::vector<OpId>& order,
                     const std::vector<WrongResult>& wrong, Findings& findings);

}  // namespace espalier
