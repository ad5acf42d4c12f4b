// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/backend.h"

namespace espalier {

/// Runs programs on the threads and memory of this computer, with real arithmetic. Every place's
/// buffers are separate allocations. Needs no machine model.
///
/// Options: `check` makes one run more, before the others, from fresh inputs and with everything
/// else overwritten by a pattern, and compares every element afterwards. Then come `warmup` and
/// `iterations` runs; the time of one is from when all threads stand ready until the last op is
/// done. A program that runs in place gets its inputs again before each run, outside of the time
/// (out of place they are never written), so that no timed run works on overgrown or denormal
/// numbers. `timeline` is that of the last run.
class HostBackend : public Backend {
 public:
  /// Threads that run the program at a time; 0: one per processor. Never more than its lanes.
  explicit HostBackend(int threads = 0) : threads_(threads) {}

  std::string name() const override { return "host"; }
  std::optional<std::string> unsupported(const Program& program,
                                         const Target& target) const override;
  /// Throws Error{unsupported} saying how much memory it would take when that is more than this
  /// computer can give, and Error{runtime} naming ops when the program gets stuck.
  RunReport run(const Program& program, const Target& target, const RunOptions& options) override;
  void require_room(const Program& program, const Target& target,
                    const RunOptions& options) override;

 private:
  int threads_;
};

}  // namespace espalier
