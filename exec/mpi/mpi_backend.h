// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "exec/mpi/told_elsewhere.h"
#include "run/backend.h"

namespace espalier {

struct Processes;
class ProcessMemory;

/// Runs programs in several processes, a rank each, that exchange messages: its own memory is all
/// that a process sees. Every process has to ask the same of it in the same order; every one gets
/// the same report. Host memories and relays are with the rank that uses them first.
///
/// Options as for HostBackend. A run begins when all processes have come, and its time is that of
/// the slowest one, each from then until its part is over.
class MpiBackend : public Backend {
 public:
  /// Buffers are in that kind of memory. `processes` must outlive it.
  MpiBackend(const Processes& processes, std::unique_ptr<ProcessMemory> memory);
  /// In memory of the computer that each process is on.
  explicit MpiBackend(const Processes& processes);
  ~MpiBackend() override;

  std::string name() const override { return "mpi"; }
  /// Programs of as many ranks as there are processes, which do not compute.
  std::optional<std::string> unsupported(const Program& program,
                                         const Target& target) const override;
  /// Throws, in all processes, Error{usage} that names the ranks that have another program,
  /// topology, question, memory or build than rank 0, and, where one of them lacks memory,
  /// OutOfMemory, or ToldElsewhere in place of these. Where the processes can't go on, the watchdog
  /// ends them.
  RunReport run(const Program& program, const Target& target, const RunOptions& options) override;
  void require_room(const Program& program, const Target& target,
                    const RunOptions& options) override;

 private:
  const Processes& processes_;
  const std::unique_ptr<ProcessMemory> memory_;
};

}  // namespace espalier
