// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <functional>
#include <optional>
#include <type_traits>
#include <vector>

namespace espalier::bench {

/// CPU seconds of this process so far: for work on one
/// thread, the wall-clock time on an otherwise idle machine.
inline double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Result>
struct ChildRun {
  Result result{};
  double peak_rss_mib = 0;  ///< of the child, what it shares with this process included
};

/// The middle of the list by `key`. \pre not empty
template <typename Item, typename Key>
Item median(std::vector<Item> items, Key key) {
  const auto middle = items.begin() + static_cast<std::ptrdiff_t>(items.size() / 2);
  std::ranges::nth_element(items, middle, {}, key);
  return *middle;
}

/// Calls `work` in a child process and brings its result (plain data) back, so that every
/// measurement has its own memory and its own SimGrid. Nothing when the child failed.
template <typename Work, typename Result = std::invoke_result_t<Work>>
std::optional<ChildRun<Result>> run_in_child(const Work& work) {
  static_assert(std::is_trivially_copyable_v<Result>);
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  std::fflush(nullptr);  // or the child would print it again
  const pid_t child = fork();
  if (child < 0) return std::nullopt;
  if (child == 0) {
    close(ends[0]);
    const Result result = work();
    const bool ok = write(ends[1], &result, sizeof result) == sizeof result;
    _exit(ok ? 0 : 1);
  }
  close(ends[1]);
  ChildRun<Result> run;
  const bool arrived = read(ends[0], &run.result, sizeof run.result) == sizeof run.result;
  close(ends[0]);
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child || status != 0 || !arrived) return std::nullopt;
  run.peak_rss_mib = static_cast<double>(usage.ru_maxrss) / 1024;
  return run;
}

}  // namespace espalier::bench
