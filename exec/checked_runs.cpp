// SPDX-License-Identifier: Apache-2.0
#include "exec/checked_runs.h"

#include <chrono>

#include "core/interruption.h"

namespace espalier {
namespace {

void check(CheckedMemory& memory, Damage& damage) {
  Damage found = memory.check();
  damage.wrong += found.wrong;
  damage.notes.insert(damage.notes.end(), found.notes.begin(), found.notes.end());
}

}  // namespace

CheckedRuns run_checked(bool in_place, CheckedMemory& memory, const RunOptions& options,
                        const RunOnce& run_once) {
  using Clock = std::chrono::steady_clock;
  CheckedRuns runs;
  memory.fill();
  if (options.check) {
    run_once(nullptr);
    check(memory, runs.damage);
  }
  Clock::time_point begin = Clock::now();
  for (int i = -options.warmup; i < options.iterations; ++i) {
    check_interruption();
    if (i == 0) begin = Clock::now();
    if (in_place) memory.fill_inputs();
    const bool last = i + 1 == options.iterations;
    const double time_s = run_once(last && options.timeline ? &runs.timeline : nullptr);
    if (i >= 0) runs.times_s.push_back(time_s);
  }
  runs.interval_s =
      std::chrono::duration<double>(Clock::now() - begin).count() / options.iterations;
  if (options.check) check(memory, runs.damage);
  if (options.check && in_place) {
    // What a timed run did not write may have been right from the run before.
    memory.fill();
    run_once(nullptr);
    check(memory, runs.damage);
  }
  return runs;
}

}  // namespace espalier
