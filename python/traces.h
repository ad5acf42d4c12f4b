// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "python/values.h"
#include "report/trace.h"

namespace espalier {

/// As many as said, where 0 is all. Throws Error{usage} for less.
std::size_t most_ops(std::int64_t ops);

/// Writes it; returns how many ops are not in it.
std::size_t save_trace(const Trace& trace, const PathArgument& path);

}  // namespace espalier
