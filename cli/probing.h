// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "scenarios/study.h"
#include "surveys.h"

namespace espalier {

/// Reads --backend: one of those that execute.
const BackendEntry& read_backend(Arguments& arguments);

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

/// Reads --backend, --devices and --virtual; notes problems. A device named several times is
/// shared by as many ranks.
ProbeRequest read_probe_request(Arguments& arguments);

/// The same with a progress bar, and notes on what may be wrong with it.
Survey survey_machine(const ProbeRequest& request, const Console& console);

}  // namespace espalier
