// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exec/checked_runs.h"
#include "exec/host/host_data.h"
#include "exec/host/lane_runner.h"
#include "exec/host/numa.h"
#include "run/options.h"
#include "run/report.h"

namespace espalier {

/// A rank's or all ranks' buffers in memory of this computer. The arguments must outlive it.
class CheckedHostMemory : public CheckedMemory {
 public:
  CheckedHostMemory(const HostData& data, HostMemory& memory) : data_(data), memory_(memory) {}
  void fill() override { fill_memory(data_, memory_); }
  void fill_inputs() override { espalier::fill_inputs(data_, memory_); }
  Damage check() override { return check_memory(data_, memory_); }

 private:
  const HostData& data_;
  HostMemory& memory_;
};

/// Runs, times and checks a lowered program as HostBackend says. `combine` carries out its ops on
/// `memory`. Fills in the report but for sizes, transfers and the time of everything.
RunReport run_on_host(const HostData& data, const LanePrograms& lowered, HostMemory& memory,
                      const LaneRunner::Combine& combine, const NumaPlan& numa,
                      const RunOptions& options);

}  // namespace espalier
