// SPDX-License-Identifier: Apache-2.0
#include "python/computing.h"

#include <unistd.h>

#include <chrono>
#include <functional>

namespace espalier {

namespace {

using Clock = std::chrono::steady_clock;

/// A person does not notice, and taking turns with other threads costs nothing to speak of.
constexpr std::chrono::milliseconds kBetweenLooks{50};

std::timed_mutex& one_at_a_time() {
  static std::timed_mutex mutex;
  return mutex;
}

void look_for_signals() {
  const pybind11::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) throw Interrupted();
}

std::unique_lock<std::timed_mutex> wait_for_turn() {
  std::unique_lock lock(one_at_a_time(), std::defer_lock);
  while (!lock.try_lock_for(kBetweenLooks)) look_for_signals();
  return lock;
}

std::function<void()> signals_now_and_then() {
  // A worker process is a copy of this one in which no Python runs.
  return [last = Clock::now(), process = getpid()]() mutable {
    const Clock::time_point now = Clock::now();
    if (now - last < kBetweenLooks || getpid() != process) return;
    last = now;
    look_for_signals();
  };
}

}  // namespace

Computing::Computing() : lock_(wait_for_turn()), check_(signals_now_and_then()) {}

}  // namespace espalier
