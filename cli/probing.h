// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "probe/survey.h"
#include "scenarios/study.h"

namespace espalier {

/// Reads --backend: one of those that execute.
const BackendEntry& read_backend(Arguments& arguments);

/// Reads --devices; notes a problem when they are given for threads.
std::vector<int> read_devices(Arguments& arguments, const BackendEntry& backend);

/// Reads --devices, --memory and --transport; notes a problem when they are given for a back end
/// that they say nothing about.
DeviceChoice read_device_choice(Arguments& arguments, const BackendEntry& backend);

/// The list of --devices says how many ranks there are when nothing else does; notes a problem when
/// it is not as long as --ranks.
void count_ranks(Arguments& arguments, const std::vector<int>& devices, Query& question);

/// Where each rank is a process, there are as many ranks as processes. Throws what
/// `BackendEntry::processes` throws, and Error{usage} when --ranks says something else.
void count_processes(const Arguments& arguments, const BackendEntry& backend, Query& question);

/// The console itself, or a mute one in a process that leaves it to another to tell what comes out.
Console console_for(const BackendEntry& backend, const Console& console);

/// What to probe: GPUs, each of which is a rank, or a number of ranks on one of them or on this
/// computer.
struct ProbeRequest {
  const BackendEntry* backend = nullptr;
  std::vector<int> devices;  ///< as CUDA numbers them; empty: all
  int sharing = 0;           ///< ranks that share the device; 0: they do not
  double timeout_s = 60;
};

/// Reads --backend, --devices and --virtual; notes problems. A device named several times is
/// shared by as many ranks.
ProbeRequest read_probe_request(Arguments& arguments);

/// Ranks of a comparison that nobody numbers: all GPUs where there are several, otherwise as many
/// as `unless_gpus` on the only one or on this computer. Throws what
/// `BackendEntry::count_devices` throws.
int ranks_to_probe(const BackendEntry& backend, int unless_gpus);

/// What a comparison without a topology has to probe: that many ranks on the devices named, in
/// turn on all there are, or on this computer. Throws Error{usage} when some but not all of them
/// share a device, and when more share one than can be probed.
ProbeRequest probe_request_for(const BackendEntry& backend, const std::vector<int>& devices,
                               int ranks, double timeout_s);

/// Measures the machine, with a progress bar. Throws Error{unsupported} when there is no GPU to be
/// used, and what the back ends throw.
Survey survey_machine(const ProbeRequest& request, const Console& console);

/// The machine that explains the survey, dated today.
Topology probed_machine(const Survey& survey);

}  // namespace espalier
