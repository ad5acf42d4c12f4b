// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/cell_map.h"
#include "ir/exact_values.h"
#include "ir/findings.h"
#include "ir/program.h"
#include "ir/verify.h"

namespace espalier {

/// How much an exact comparison may take.
struct ExactLimits {
  /// Unless it is asked for: some 100 MB, and less time than the other rules. Enough for a ring
  /// over 2048 ranks.
  ExactValues::Limits moderate{std::size_t{1} << 22, std::uint64_t{1} << 24};
  /// When it is asked for: some 1.5 GB, and a few minutes.
  ExactValues::Limits largest{std::size_t{1} << 26, std::uint64_t{1} << 33};
};

/// What `check_data` says of the results.
struct DataVerdict {
  bool order_consistent = true;  ///< R9
  Proof proof = Proof::none;
};

/// Follows the data through the program: R5, R7 and R9. Results are compared exactly or by random
/// sums, as the options ask; where they must be compared exactly and that takes too much, reports
/// the limit. Private to this room. \pre R1 to R4 hold; every op is in `order`, an order that can
/// run.
DataVerdict check_data(const Program& program, const CellMap& cells, const std::vector<OpId>& order,
                       const VerifyOptions& options, Findings& findings,
                       const ExactLimits& exact_limits = {});

}  // namespace espalier
