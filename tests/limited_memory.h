// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "core/error.h"

namespace espalier {

/// Address sanitizers need far more addresses than memory, so limits say nothing with them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kCanLimitMemory = false;
#else
inline constexpr bool kCanLimitMemory = true;
#endif

/// From here on this process may have so many bytes more than it has now. For processes that end
/// soon.
inline void limit_memory(std::size_t more_bytes) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + more_bytes;
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(97);
}

/// Ends the process with exit_code and text of the error of `action`, or with 96 when there is
/// none.
[[noreturn]] inline void end_with_error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::_Exit(exit_code(error.kind()));
  }
  std::_Exit(96);
}

}  // namespace espalier
