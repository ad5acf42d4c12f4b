// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "run/backend.h"

namespace espalier {

/// Runs programs on the threads and memory of this computer, with real arithmetic. Every place's
/// buffers are separate allocations. Needs no machine model.
///
/// Options: `check` makes one run more, before the others, from fresh memory: inputs filled and
/// everything else overwritten by a pattern. Every element of the results, the inputs of runs out
/// of place and guards around all buffers are compared after it, and once more after the timed
/// runs. These are `warmup` and `iterations` runs; the time of one is from when all threads stand
/// ready until the last op is done. In place a program gets its inputs again before each run,
/// outside of the time (out of place they are never written), so that what the last run leaves is
/// what one run should, and no timed run works on overgrown or denormal numbers. Blocks that timed
/// runs failed to write may be right from a run before; in place one run more, from fresh memory,
/// is compared for that. `timeline` is that of the last timed run.
///
/// Where this process may use processors of several NUMA nodes, places are spread over these, and
/// with them memory and threads (exec/host/numa.h); the report's notes say how.
class HostBackend : public Backend {
 public:
  /// Threads that run the program at a time; 0: one per processor that this process may use. Never
  /// more than its lanes. `nodes`: the folder where Linux describes NUMA nodes.
  explicit HostBackend(int threads = 0, std::filesystem::path nodes = "/sys/devices/system/node");

  std::string name() const override { return "host"; }
  std::optional<std::string> unsupported(const Program& program,
                                         const Target& target) const override;
  /// Throws OutOfMemory, saying before anything runs what needs how much memory when that is more
  /// than 80 % of what is free, and Error{runtime} naming ops when the program gets stuck.
  RunReport run(const Program& program, const Target& target, const RunOptions& options) override;
  void require_room(const Program& program, const Target& target,
                    const RunOptions& options) override;

 private:
  int threads_;
  std::filesystem::path nodes_;
};

}  // namespace espalier
