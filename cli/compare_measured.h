// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/arguments.h"
#include "cli/console.h"

namespace espalier {

/// `compare --measured FILE`: simulates what a log of nccl-tests measured (its collective, ranks
/// and sizes, out of place and in place) and prints the times of both. Returns the exit code.
int compare_with_log(Arguments& arguments, const Console& console);

}  // namespace espalier
