// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "topologies/topology.h"

namespace espalier {

/// How a machine differs from what its file says, as written after its name:
///   without=A-B        no links between nodes A and B; without=KIND, none of that kind
///   LINKS.FIGURE=V     LINKS are a kind or A-B; gbps, latency_us or count
///   NODES.FIGURE=V     NODES are names, a model, "gpu" or "cpu"; speed, memory_gbps, reduce_gbps
///   or
///                      access_gbps (of GPUs and CPUs), peer_limit or copy_engines (of GPUs)
/// V is the new value, or "x2" for twice the value so far: changes are made in their order. Names
/// may be patterns ("gpu[0-3]") and, in a machine of several hosts, leave out the host: gpu0 is
/// then that of every host.
struct MachineChange {
  std::string key;
  std::string value;
};

/// Whether `key` is one of a change, and not a parameter such as "nodes".
bool is_change_key(std::string_view key);

/// What it changes; to change that twice is a mistake: "nvlink2.gbps", "without=gpu0-gpu1".
std::string change_subject(const MachineChange& change);

/// "without=gpu0-gpu1"
std::string to_string(const MachineChange& change);

/// Changes a machine that has passed `check_topology`; afterwards it passes again, or there are
/// problems. A figure measured on changed links is scaled with them. A GPU's speed is that of all
/// it does itself: computation, reductions, reads and writes. Changed nodes and links remember how
/// (`what_if`).
void change_machine(Topology& machine, const std::vector<MachineChange>& changes,
                    DiagnosticList& problems);

}  // namespace espalier
