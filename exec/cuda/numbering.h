// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/inventory.h"
#include "topologies/topology.h"

namespace espalier {

/// GPUs, as far as they can be told apart: those of a computer, or of a host of a topology.
struct GpuGraph {
  std::vector<std::string> names;         ///< in sentences: "GPU 2", "gpu2"
  std::vector<std::string> models;        ///< "Tesla V100-SXM2-16GB", "v100-sxm2"; empty: not known
  std::vector<std::vector<int>> nvlinks;  ///< by GPU and GPU: parallel links between them
  std::vector<int> to_switches;           ///< by GPU: links to NVSwitches

  int size() const { return static_cast<int>(names.size()); }
};

/// The GPUs of a host of a machine, in the order of their numbers.
std::vector<NodeId> gpus_of_host(const Topology& machine, int host);
/// A GPU's number among those of its host.
int number_in_host(const Topology& machine, NodeId gpu);

/// These GPUs of a machine.
GpuGraph graph_of(const Topology& machine, const std::vector<NodeId>& gpus);
/// The GPUs of a computer, as it numbers them.
GpuGraph graph_of(const std::vector<std::string>& models, const std::vector<ProbedNvlink>& nvlinks);

/// Whether there is anything about the GPUs of a machine that could be wrong: it was not changed by
/// a what-if, and has NVLinks or says what its GPUs are.
bool can_be_checked(const Topology& machine, const GpuGraph& graph);

/// What contradicts that GPU i of `machine` is GPU devices[i] of `computer`: a sentence for each
/// model, pair of GPUs, and GPU at switches.
std::vector<std::string> contradictions(const GpuGraph& machine, const GpuGraph& computer,
                                        const std::vector<int>& devices);

/// The GPU of `computer` that each of `machine` is, without contradiction and with as few changes
/// at the beginning as possible; nothing where there is none, or where too much would have to be
/// tried.
std::optional<std::vector<int>> matching_devices(const GpuGraph& machine, const GpuGraph& computer);

/// The other way round: which GPUs of `machine` these GPUs of `computer` are.
std::optional<std::vector<int>> matching_gpus(const GpuGraph& machine, const GpuGraph& computer,
                                              const std::vector<int>& devices);

/// So many GPUs of `machine` that the GPUs of `computer` with the same numbers do not contradict,
/// the first ones that there are.
std::optional<std::vector<int>> rightly_numbered(const GpuGraph& machine, const GpuGraph& computer,
                                                 std::size_t count);

}  // namespace espalier
