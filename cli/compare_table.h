// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/sweep.h"

namespace espalier {

/// One program, foretold and carried out; the outcomes are without the program itself.
struct Comparison {
  Outcome predicted;
  Outcome measured;

  /// What the prediction is off by, as a share of the median time measured: 0.1 is 10 % too long.
  double error() const;
};

/// The median of the errors' sizes among messages of at least that many bytes; nothing when there
/// are none.
std::optional<double> median_error(const std::vector<Comparison>& comparisons,
                                   std::int64_t min_bytes);

/// From here on the bandwidths decide, and the median error is given by itself.
inline constexpr std::int64_t kLargeMessage = std::int64_t{16} << 20;

/// Asks the queries of both studies, one after the other, adding what was measured to `answers`,
/// and writes the table, row by row, when `print`; `where` is what it calls the machine. Returns
/// those that both answered.
std::vector<Comparison> compare_table(const Console& console, Study& predicting, Study& measuring,
                                      const std::vector<Query>& queries, std::string_view where,
                                      bool print, Answers& answers);

/// As `espalier.compare/1` (docs/probing.md); `answers` knows what was skipped.
std::string comparison_json(const std::vector<Comparison>& comparisons, const Answers& answers,
                            std::string_view where);

}  // namespace espalier
