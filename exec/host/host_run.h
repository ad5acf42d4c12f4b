// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "exec/host/host_data.h"
#include "exec/host/lane_runner.h"
#include "exec/host/numa.h"
#include "run/options.h"
#include "run/report.h"

namespace espalier {

/// Runs a program once and returns its seconds; with a timeline, sets start and end of every op.
using RunOnce = std::function<double(std::vector<OpTiming>* timeline)>;

/// What came of it.
struct CheckedRuns {
  std::vector<double> times_s;  ///< of the timed runs
  Damage damage;                ///< of all checks together
  std::vector<OpTiming> timeline;
};

/// Fills the memory and runs a program on it as often, and with as many checks between, as
/// HostBackend says.
CheckedRuns run_checked(const HostData& data, HostMemory& memory, const RunOptions& options,
                        const RunOnce& run_once);

/// Runs, times and checks a lowered program as HostBackend says. `combine` carries out its ops on
/// `memory`. Fills in the report but for sizes, transfers and the time of everything.
RunReport run_on_host(const HostData& data, const LanePrograms& lowered, HostMemory& memory,
                      const LaneRunner::Combine& combine, const NumaPlan& numa,
                      const RunOptions& options);

}  // namespace espalier
