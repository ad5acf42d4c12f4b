// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "topologies/route.h"
#include "topologies/topology.h"

namespace espalier {

/// Which machine node each place of a program is: ranks on GPUs, host memories on CPUs, relays on
/// idle GPUs.
struct Placement {
  std::vector<NodeId> ranks;
  std::vector<NodeId> hosts;         ///< CPUs nearest to the ranks, each once, in rank order
  std::vector<int> host_of_rank;     ///< index into `hosts`; -1 when no CPU can be reached
  std::vector<int> machine_of_rank;  ///< Node::host of the rank's GPU
  std::vector<NodeId> relays;        ///< idle GPUs that may hold, forward and combine data
  bool operator==(const Placement&) const = default;
};

/// The machine's GPUs numbered by `gpus`, in that order; all of them when empty. Throws
/// Error{usage} with every number that is out of range or given twice.
std::vector<NodeId> chosen_gpus(const Topology& topology, const std::vector<int>& gpus);

/// The GPUs numbered by `relays`, which help ranks on `gpus`. Throws Error{usage} with every number
/// that is out of range, given twice, or among `gpus`.
std::vector<NodeId> chosen_relays(const Topology& topology, const std::vector<int>& gpus,
                                  const std::vector<int>& relays);
/// The numbers of the GPUs that `gpus` leaves out: none when it is empty.
std::vector<int> idle_gpus(const Topology& topology, const std::vector<int>& gpus);

/// Ranks 0..n-1 on `chosen_gpus`, relays on `chosen_relays`. Throws what both throw, together.
Placement place_ranks(const Router& router, const std::vector<int>& gpus,
                      const std::vector<int>& relays = {});

/// The first pair of ranks without a route, to name it in the error (exit code 3); nothing
/// if all are connected. A pair counts as connected if a chain of ranks and relays joins it.
std::optional<std::pair<int, int>> unreachable_pair(const Router& router,
                                                    const Placement& placement);
/// The ranks of the largest set that is connected in this sense; of equal ones, the first.
std::vector<int> most_connected(const Router& router, const Placement& placement);

}  // namespace espalier
