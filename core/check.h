// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace espalier {

/// Reports a broken invariant of our own (never bad input) on stderr and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace espalier

/// States an invariant of this program. A failure is a bug in Espalier, not in the user's input.
#define CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::espalier::check_failed(#condition, __FILE__, __LINE__))
