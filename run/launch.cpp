// SPDX-License-Identifier: Apache-2.0
#include "run/launch.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/check.h"

namespace espalier {

int most_gpus_of_a_host(const Topology& topology, const Placement& placement) {
  std::map<int, int> gpus;
  for (const std::vector<NodeId>* nodes : {&placement.ranks, &placement.relays}) {
    for (const NodeId node : *nodes) ++gpus[topology.node(node).host];
  }
  int most = 0;
  for (const auto& [host, count] : gpus) most = std::max(most, count);
  return most;
}

const LaunchCost* launch_cost(const LaunchCosts& costs, LaunchMode mode, int version) {
  if (mode == LaunchMode::per_gpu && costs.per_gpu) return &*costs.per_gpu;
  if (mode == LaunchMode::single && !costs.single.empty()) return &costs.single_of(version);
  return nullptr;
}

std::vector<double> launch_starts_s(const LaunchCosts& costs, LaunchMode mode, int version,
                                    const Topology& topology, const Placement& placement) {
  const LaunchCost* const cost = launch_cost(costs, mode, version);
  if (mode != LaunchMode::single || cost == nullptr) return {};
  std::map<int, int> launched;
  std::vector<double> starts_s;
  for (const NodeId node : placement.ranks) {
    starts_s.push_back(launched[topology.node(node).host]++ * cost->call_s);
  }
  return starts_s;
}

double launched_s(const LaunchCosts& costs, LaunchMode mode, const LaunchedCalls& calls) {
  if (mode == LaunchMode::graph) {
    return std::max(calls.gpu_s - costs.graph_saves_s, calls.busiest_s);
  }
  const LaunchCost* const cost = launch_cost(costs, mode, calls.library_version);
  if (cost == nullptr) return calls.gpu_s;
  const double of_call_s = cost->call_s + calls.blocks * cost->block_s;
  if (mode == LaunchMode::per_gpu) return std::max(calls.gpu_s, of_call_s);
  const double host_s = calls.gpus_per_process * of_call_s;
  const double gpu_s = calls.gpu_s + std::max(calls.isolated_s - calls.gpu_s, 0.0) / calls.timed;
  const double longer_s = std::max(gpu_s, host_s);
  const double shorter_s = std::min(gpu_s, host_s);
  if (longer_s <= 0) return 0;
  return longer_s *
         std::pow(1 + std::pow(shorter_s / longer_s, costs.sharpness), 1 / costs.sharpness);
}

}  // namespace espalier
