// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "cli/console.h"
#include "cli/sweep.h"

namespace espalier {

/// Who answers the queries of a table, and the bar that is in the way of what is printed.
struct Asking {
  std::function<Outcome(const Query& query)> ask;
  Progress& progress;
};

/// Asks the queries of one table (one machine, sizes one after the other) and adds to `answers`.
/// When `print`, writes the table in the manner of nccl-tests, each size as soon as it is known,
/// fastest first, then the bounds with their certificates and what did not apply. `study` knows the
/// machine.
void simulate_table(const Console& console, Study& study, const std::vector<Query>& queries,
                    const Asking& asking, bool print, Answers& answers);

/// The same, asking the study.
void simulate_table(const Console& console, Study& study, const std::vector<Query>& queries,
                    bool print, Answers& answers);

/// The bounds of the outcomes, each once, with their certificates.
void print_bounds(const Console& console, const std::vector<Outcome>& outcomes);

/// The busiest links of a run as bars, at most `maximum` of them.
void print_links(const Console& console, const Outcome& outcome, int maximum);

/// The chain of ops that decided the time; the middle of a long one is left out.
void print_critical_path(const Console& console, const Outcome& outcome);

}  // namespace espalier
