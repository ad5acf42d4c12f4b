// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/mpi_cuda/gpu_choice.h"
#include "run/backend.h"
#include "run/inventory.h"
#include "scenarios/scenario_runner.h"

namespace espalier {

/// Which devices of this computer the ranks are on. Threads have none.
struct DeviceChoice {
  std::vector<int> devices;  ///< of each rank and then each relay; empty: they are not named
  /// Where they are not named: each rank is on the device that has the number of its GPU in the
  /// machine, which is this computer. If false, ranks are assigned to all devices in turn.
  bool as_placed = false;
  /// Of processes: their buffers are in GPU memory, between which messages go like this. If not
  /// given, buffers are in memory of the processes' computers.
  std::optional<GpuTransport> gpu_memory = {};
};

/// A back end as people choose it: help, options, scenarios, probing and conformance tests follow
/// from the table of these. A new back end is its class and a row here.
struct BackendEntry {
  std::string_view name;          ///< as its reports call it: "host"
  std::string_view meaning;       ///< in one line
  std::string_view runs_on = {};  ///< "threads of this computer"; empty for one that predicts
  bool executes = true;           ///< with real data; else it predicts
  /// It has devices that --devices numbers, each with a memory of its own. Threads have none.
  bool has_devices = false;
  /// Its buffers may be in GPU memory instead (DeviceChoice::gpu_memory).
  bool may_use_gpus = false;
  /// Throws what the back end's constructor throws: Error{unsupported} where it can't be used here,
  /// Error{usage} for devices that do not exist.
  std::unique_ptr<Backend> (*make)(const DeviceChoice& choice) = nullptr;
  /// How many devices there are. Throws Error{unsupported} where it can't be used here. Null
  /// without devices.
  int (*count_devices)() = nullptr;
  /// What can be probed: the devices chosen (all of them where none are named), or `ranks` ranks on
  /// a single one. Throws what `make` throws. Null where there is nothing to probe.
  Inventory (*inventory)(const DeviceChoice& choice, int ranks) = nullptr;
  /// The library whose own collectives can be run on the buffers of programs; empty: there is none.
  std::string_view library = {};
  /// Its version here, as `library_version` has it. Throws Error{unsupported} where there is none.
  int (*require_library)() = nullptr;
  /// What runs it in place of the programs of a back end that `make` made, which must outlive it.
  /// Throws what `require_library` throws.
  std::unique_ptr<Backend> (*make_library)(Backend& programs) = nullptr;
  /// Where each rank is a process that somebody else has started: connects them, if they are not
  /// yet; from then on, none of them getting further for so long is an error. Throws what `make`
  /// throws. Null as `processes`.
  void (*connect)(double timeout_s) = nullptr;
  /// Where each rank is a process that somebody else has started: how many there are. All of them
  /// ask the same and get the same answers. Throws what `make` throws. Null where this process has
  /// all ranks.
  int (*processes)() = nullptr;
  /// Whether this process is the one of them that tells the answers. Null as `processes`.
  bool (*tells)() = nullptr;
};

/// What a back end that executes measures where it is not GPUs that it runs on, as `runs_on`; empty
/// where it is.
std::string_view measured_in_place_of_gpus(const BackendEntry& entry, const DeviceChoice& choice);

/// Every back end of this build, the simulator first.
const std::vector<BackendEntry>& all_backends();

/// Those that execute.
std::vector<const BackendEntry*> executing_backends();

/// Throws Error{usage} with did-you-mean for an unknown name.
const BackendEntry& find_backend(std::string_view name);

/// For scenarios: the simulator, and every back end that executes, on whatever devices it chooses.
ScenarioBackends scenario_backends();

}  // namespace espalier
