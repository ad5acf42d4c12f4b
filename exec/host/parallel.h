// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace espalier {

/// Calls body(0) ... body(count - 1), each once, on up to `threads` threads at a time, the caller's
/// among them. An exception of `body` is rethrown here once all threads have stopped; indices not
/// begun by then are skipped.
void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body);

}  // namespace espalier
