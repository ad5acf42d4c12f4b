// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <mutex>

#include "core/interruption.h"

namespace espalier {

/// Python has a signal to handle and its handler raised: the error is set in this thread.
struct Interrupted {};

/// While it lives, other Python threads run, and this one computes; one thread at a time does, as
/// the library has one simulation engine in a process. Every now and then Python looks for signals,
/// so that Ctrl-C stops what is computed by throwing Interrupted.
class Computing {
 public:
  Computing();
  Computing(const Computing&) = delete;
  Computing& operator=(const Computing&) = delete;

 private:
  const pybind11::gil_scoped_release released_;
  std::unique_lock<std::timed_mutex> lock_;
  const InterruptionCheck check_;
};

/// What `work` returns. It must not touch Python's objects. `interrupted` is called, with Python
/// again, where it did not end.
template <class Work, class OnInterruption>
auto compute(Work&& work, OnInterruption&& interrupted) -> decltype(work()) {
  try {
    const Computing computing;
    return work();
  } catch (const Interrupted&) {
    interrupted();
    throw pybind11::error_already_set();
  }
}

}  // namespace espalier
