// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/checked_runs.h"
#include "exec/host/host_data.h"
#include "exec/lanes/lowering.h"
#include "exec/lanes/message_plan.h"
#include "exec/mpi/processes.h"
#include "exec/mpi/step_carrier.h"
#include "exec/room.h"
#include "run/target.h"

namespace espalier {

/// What a process has of a program: its buffers, and who carries out its steps on them.
class ProcessPart : public CheckedMemory {
 public:
  virtual StepCarrier& steps() = 0;
  /// Tells the other processes what their messages need of this one, before the first run. All
  /// processes call it together. Returns what is to be said above the table: who is where, and what
  /// goes another way than asked for; throws in all of them what they can't do.
  virtual std::vector<std::string> connect() = 0;
  /// After the last run, all together; this process's memory must not go away before.
  virtual void disconnect() {}
};

/// The kind of memory that processes have their buffers in.
class ProcessMemory {
 public:
  virtual ~ProcessMemory() = default;
  /// What all processes have to have alike: "host".
  virtual std::string name() const = 0;
  /// How it receives what it combines: part of what `name` says.
  virtual Scratch scratch() const = 0;
  /// Adds what `prepare` allocates, to the first of `needs`, which is this computer's and counts
  /// all of its processes, or as a need of its own. Throws Error where this process has no such
  /// memory.
  virtual void add_needs(const HostData& data, const Target& target, const RunOptions& options,
                         std::vector<MemoryNeed>& needs) = 0;
  /// Allocates. `lowered` has the buffers of this process's places only; `plan` has its steps. The
  /// arguments but for `lowered` must outlive what is returned. Throws OutOfMemory.
  virtual std::unique_ptr<ProcessPart> prepare(const HostData& data, const Target& target,
                                               const LanePrograms& lowered,
                                               const MessagePlan& plan) = 0;
};

/// Memory of the computer that a process is on. `processes` must outlive it.
std::unique_ptr<ProcessMemory> make_host_memory(const Processes& processes);

/// "rank 0: node7, socket 1"; "ranks 0-3: node7" where several in a row are at the same place.
std::vector<std::string> describe_places(const std::vector<std::string>& places);

}  // namespace espalier
