// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "cli/arguments.h"
#include "cli/console.h"
#include "report/trace.h"

namespace espalier {

/// Where --trace writes, and of how many ops.
struct TraceOutput {
  std::string path;  ///< empty: nowhere
  std::size_t most_ops = 0;
};
/// Reads --trace and --trace-ops, whose 0 is all.
TraceOutput read_trace(Arguments& arguments);

/// Writes the trace, compressed where its name ends in ".gz", and says what is not in it.
void write_trace(const Console& console, const TraceOutput& output, const Trace& trace);

}  // namespace espalier
