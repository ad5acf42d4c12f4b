// SPDX-License-Identifier: Apache-2.0
#include "exec/host/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace espalier {

void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body) {
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    try {
      for (std::int64_t i; (i = next.fetch_add(1)) < count;) body(i);
    } catch (...) {
      next.store(count);
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> helpers;
  try {
    for (std::int64_t i = 1; i < std::min<std::int64_t>(threads, count); ++i) {
      helpers.emplace_back(work);
    }
  } catch (const std::system_error&) {
    // The system has no more threads to give: those there are do all the work.
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace espalier
