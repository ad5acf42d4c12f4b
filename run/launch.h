// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "topologies/launch_costs.h"
#include "topologies/placement.h"

namespace espalier {

/// Ranks and relays on the host that has most of them.
int most_gpus_of_a_host(const Topology& topology, const Placement& placement);

/// What a call costs the host that launches it like this, by a version of the library as
/// `library_version` answers. Null: nothing is known, or a graph has it done.
const LaunchCost* launch_cost(const LaunchCosts& costs, LaunchMode mode, int version);

/// Calls that nccl-tests times without waiting between them, unless its `-n` says otherwise.
inline constexpr int kTimedCalls = 20;

/// What the calls of a benchmark are made of.
struct LaunchedCalls {
  double gpu_s = 0;          ///< from one call to the next, as far as GPUs are concerned
  int gpus_per_process = 1;  ///< with LaunchMode::single
  int blocks = 0;            ///< in use of the fullest GPU
  int library_version = 0;   ///< as `library_version` answers; 0: the newest
  double busiest_s = 0;      ///< a call keeps no link, memory or arithmetic busy for longer
  double isolated_s = 0;     ///< of one call by itself; values below gpu_s count as gpu_s
  int timed = kTimedCalls;   ///< between two waits of the benchmark
};

/// How often such calls are made at most, as the time of one: what nccl-tests prints.
///
/// A process per GPU launches call after call without waiting; its host is held up so long by each,
/// and the slower of host and GPU decides. One process does that for all its GPUs in turn; logs of
/// it pass smoothly from the host's time to the GPU's: the root of the sum of their powers
/// (LaunchCosts::sharpness). It waits before it times `timed` calls, and then until the last GPU is
/// done with them (NVIDIA/nccl-tests src/common.cu: iters, completeColl): one of them takes
/// `isolated_s`. Several processes end their own times, which are averaged; that is left out. A
/// graph costs nothing, and its kernels begin sooner after each other (LaunchCosts::graph_saves_s).
double launched_s(const LaunchCosts& costs, LaunchMode mode, const LaunchedCalls& calls);

/// When the ranks of a call by itself begin: one process launches the kernels of its host's GPUs
/// one after the other, each of which costs it `call_s`. Empty: all at once. A benchmark's calls
/// follow each other without waiting, and nobody sees that in the mean (launched_s).
std::vector<double> launch_starts_s(const LaunchCosts& costs, LaunchMode mode, int version,
                                    const Topology& topology, const Placement& placement);

}  // namespace espalier
