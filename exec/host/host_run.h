// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exec/host/host_data.h"
#include "exec/host/lane_runner.h"
#include "exec/host/numa.h"
#include "run/options.h"
#include "run/report.h"

namespace espalier {

/// Runs, times and checks a lowered program as HostBackend says. `combine` carries out its ops on
/// `memory`. Fills in the report but for sizes, transfers and the time of everything.
RunReport run_on_host(const HostData& data, const LanePrograms& lowered, HostMemory& memory,
                      const LaneRunner::Combine& combine, const NumaPlan& numa,
                      const RunOptions& options);

}  // namespace espalier
