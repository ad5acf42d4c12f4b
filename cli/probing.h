// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "probe/survey.h"
#include "run/backend.h"
#include "scenarios/study.h"

namespace espalier {

/// Who executes programs.
enum class Executor { host, cuda };

/// Reads --backend.
Executor read_executor(Arguments& arguments);

/// Reads --devices; notes a problem when they are given for threads.
std::vector<int> read_devices(Arguments& arguments, Executor executor);

/// The list of --devices says how many ranks there are when nothing else does; notes a problem when
/// it is not as long as --ranks.
void count_ranks(Arguments& arguments, const std::vector<int>& devices, Query& question);

/// The devices in turn for the ranks; when empty, those that the user's topology has them on, or
/// all there are without one. Throws what CudaBackend throws.
std::unique_ptr<Backend> make_backend(Executor executor, const std::vector<int>& devices,
                                      bool names_topology = false);

/// What to probe: GPUs, each a rank, or so many ranks on one of them or on this computer.
struct ProbeRequest {
  Executor executor = Executor::host;
  std::vector<int> devices;  ///< as CUDA numbers them; empty: all
  int sharing = 0;           ///< ranks that share the device; 0: they do not
  double timeout_s = 60;
};

/// Reads --backend, --devices and --virtual; notes problems. A device named several times is
/// shared by as many ranks.
ProbeRequest read_probe_request(Arguments& arguments);

/// Ranks of a comparison that nobody numbers: all GPUs where there are several, otherwise as many
/// as `unless_gpus` on the only one or on this computer. Throws what `cuda_gpus` throws.
int ranks_to_probe(Executor executor, int unless_gpus);

/// What a comparison without a topology has to probe: that many ranks on the devices named, in
/// turn on all there are, or on this computer. Throws Error{usage} when some but not all of them
/// share a device, and when more share one than can be probed.
ProbeRequest probe_request_for(Executor executor, const std::vector<int>& devices, int ranks,
                               double timeout_s);

/// What is known to make the machine of a prediction another than the one that is measured, in
/// sentences: the topology was not probed, is of GPUs where threads are measured, or its ranks
/// share a device where those measured do not, or the other way round. `devices` as in
/// `make_backend`.
std::vector<std::string> doubts_about(const Topology& machine, Executor executor,
                                      const std::vector<int>& devices);

/// Bytes of a rank's buffers while the machine is measured: what fits into half of the memory that
/// is free on the fullest of its GPUs, and no more than is needed.
std::int64_t probe_footprint_bytes(const Inventory& inventory);

/// Measures the machine, with a progress bar. Throws Error{unsupported} when there is no GPU to be
/// used, and what the back ends throw.
Survey survey_machine(const ProbeRequest& request, const Console& console);

/// The machine that explains the survey, dated today.
Topology probed_machine(const Survey& survey);

}  // namespace espalier
