// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cli/console.h"
#include "cli/sweep.h"

namespace espalier {

/// Runs the queries of one algorithm, one per size, out of place and in place, and adds to
/// `answers`. When `print`, writes exactly the table of nccl-tests, whose parsers then work here
/// too.
void execute_table(const Console& console, Study& study, const std::vector<Query>& queries,
                   bool print, Answers& answers);

}  // namespace espalier
