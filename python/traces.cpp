// SPDX-License-Identifier: Apache-2.0
#include "python/traces.h"

#include <fmt/format.h>

#include "core/file.h"

namespace espalier {

std::size_t most_ops(std::int64_t ops) {
  if (ops < 0) {
    throw Error(ErrorKind::usage, fmt::format("ops is {}, but must not be negative", ops),
                "0 for all");
  }
  return ops > 0 ? static_cast<std::size_t>(ops) : kAllOps;
}

std::size_t save_trace(const Trace& trace, const PathArgument& path) {
  write_file(path.text, trace_file(trace, path.text));
  return trace.left_out + trace.counted_in;
}

}  // namespace espalier
