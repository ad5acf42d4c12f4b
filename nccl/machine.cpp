// SPDX-License-Identifier: Apache-2.0
#include "nccl/machine.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "topologies/fabric.h"

namespace espalier {
namespace {

/// What is not known is taken for one of these, as NCCL's tuner takes it for Ampere.
constexpr int kUnknownCapability = 80;

struct Model {
  std::string_view start;  ///< of the model's name
  int capability;
};
constexpr std::array kModels = {
    Model{"gk210", 37}, Model{"k80", 37},    Model{"p100", 60},  Model{"p40", 61},
    Model{"v100", 70},  Model{"t4", 75},     Model{"a100", 80},  Model{"a800", 80},
    Model{"a30", 80},   Model{"a40", 86},    Model{"a10", 86},   Model{"a6000", 86},
    Model{"l40", 89},   Model{"l4", 89},     Model{"h100", 90},  Model{"h800", 90},
    Model{"h20", 90},   Model{"h200", 90},   Model{"gh200", 90}, Model{"b200", 100},
    Model{"b100", 100}, Model{"gb200", 100}, Model{"b300", 103}, Model{"gb300", 103}};

NcclGpuEra era_of(int capability) {
  if (capability < 80) return NcclGpuEra::volta;
  if (capability < 90) return NcclGpuEra::ampere;
  return capability < 100 ? NcclGpuEra::hopper : NcclGpuEra::blackwell;
}

/// Nodes in NCCL's sense: hosts, joined where a GPU fabric joins their GPUs. By rank, in the order
/// of first ranks.
std::vector<int> nodes_of_ranks(const Router& router, const Placement& placement) {
  std::map<int, int> node_of_host;
  std::vector<NodeId> heads;
  std::vector<int> nodes;
  const bool may_join = may_join_hosts(router.topology());
  for (std::size_t rank = 0; rank < placement.ranks.size(); ++rank) {
    const NodeId gpu = placement.ranks[rank];
    const auto [known, is_new] = node_of_host.try_emplace(placement.machine_of_rank[rank], 0);
    if (is_new) {
      const auto joined = std::ranges::find_if(heads, [&](NodeId head) {
        const Route* route = may_join ? router.route(head, gpu) : nullptr;
        return route != nullptr && route->kind == RouteKind::gpu_fabric;
      });
      known->second = static_cast<int>(joined - heads.begin());
      if (joined == heads.end()) heads.push_back(gpu);
    }
    nodes.push_back(known->second);
  }
  return nodes;
}

/// Those that the first node's ranks send over: of eight NICs, one GPU uses that nearest to it.
void find_nics(const Router& router, const Placement& placement, NcclMachine& machine) {
  const Topology& topology = router.topology();
  const auto away = std::ranges::find_if(machine.node_of_rank, [](int node) { return node != 0; });
  const NodeId peer =
      placement.ranks[static_cast<std::size_t>(away - machine.node_of_rank.begin())];
  std::set<std::pair<LinkId, NodeId>> seen;
  for (std::size_t rank = 0; rank < placement.ranks.size(); ++rank) {
    if (machine.node_of_rank[rank] != 0) continue;
    const Route* route = router.route(placement.ranks[rank], peer);
    if (route == nullptr) continue;
    for (const Hop& hop : route->hops) {
      const Link& link = topology.link(hop.link);
      if (link.link_class != LinkClass::network) continue;
      const NodeId end = hop.forward ? link.a : link.b;
      // The first one: a link between hosts without NICs is one, too.
      if (!seen.insert({hop.link, end}).second) break;
      double gbps = link.gbps * link.count;
      for (const Link& other : topology.links) {
        const bool is_bus = other.link_class == LinkClass::host &&
                            (other.a == end || other.b == end) &&
                            topology.node(end).kind == NodeKind::nic;
        // NCCL counts 12 of the 15.75 GB/s of PCIe 3 (src/graph/topo.h: PCI_BW), others in
        // proportion.
        if (is_bus) gbps = std::min(gbps, other.gbps * other.count * 12 / 15.75);
      }
      ++machine.nics;
      machine.nics_gbps += gbps;
      machine.nic_gbps = machine.nics == 1 ? gbps : std::min(machine.nic_gbps, gbps);
      break;
    }
  }
}

}  // namespace

std::vector<std::set<NodeId>> near_nics(const Topology& machine, const std::vector<NodeId>& gpus) {
  std::vector<std::vector<NodeId>> neighbors(machine.nodes.size());
  for (const Link& link : machine.links) {
    neighbors[static_cast<std::size_t>(link.a)].push_back(link.b);
    neighbors[static_cast<std::size_t>(link.b)].push_back(link.a);
  }
  std::vector<std::set<NodeId>> all;
  for (const NodeId gpu : gpus) {
    std::set<NodeId>& found = all.emplace_back();
    std::set<NodeId> seen = {gpu};
    std::vector<NodeId> open = {gpu};
    while (!open.empty()) {
      const NodeId here = open.back();
      open.pop_back();
      for (const NodeId next : neighbors[static_cast<std::size_t>(here)]) {
        const NodeKind kind = machine.node(next).kind;
        if (kind == NodeKind::nic || kind == NodeKind::fabric) found.insert(next);
        if (kind == NodeKind::pcie_switch && seen.insert(next).second) open.push_back(next);
      }
    }
  }
  return all;
}

int compute_capability(const std::string& model) {
  if (model.starts_with("sm")) {
    int value = 0;
    const auto [end, error] = std::from_chars(model.data() + 2, model.data() + model.size(), value);
    if (error == std::errc() && end == model.data() + model.size()) return value;
  }
  const Model* best = nullptr;
  for (const Model& known : kModels) {
    const bool is_longer = best == nullptr || known.start.size() > best->start.size();
    if (model.starts_with(known.start) && is_longer) best = &known;
  }
  return best == nullptr ? 0 : best->capability;
}

bool is_amd_gpu(const std::string& model) {
  return model.starts_with("mi") || model.starts_with("gfx");
}

bool is_amd(const Topology& machine, const Placement& placement) {
  return std::ranges::any_of(placement.ranks,
                             [&](NodeId gpu) { return is_amd_gpu(machine.node(gpu).model); });
}

NcclVersion first_nccl_for(int capability) {
  // Those of the time at which CUDA first compiled for such GPUs, which
  // makefiles/common.mk@f44ac759 has (11.0, 11.8, 12.8): estimates, by a version. Older ones run
  // there nevertheless, from the PTX that they have with them.
  if (capability >= 100) return 25;
  if (capability >= 90) return 15;
  return capability >= 80 ? 7 : kOldestNccl;
}

double nccl_link_gbps(const std::string& kind, int capability, NcclVersion version) {
  // src/graph/topo.h at 2.6, 2.10, 2.18, 2.20 and later. The versions between that are not listed
  // have the value before.
  if (kind == "nvlink1") return 18;
  if (kind == "nvlink2" || kind == "nvlink3") {
    if (capability >= 86 && capability < 90) return 12;
    return version < 10 ? 21 : version < 18 ? 22 : 20;
  }
  if (kind == "nvlink4") return version < 20 ? 20 : 20.6;
  if (kind == "nvlink5") return version < 20 ? 20 : version < 23 ? 20.6 : 40.1;
  if (kind == "xgmi2") return 36;  // ROCm/rccl src/graph/topo.h
  if (kind == "xgmi3") return 48;
  return 0;
}

NcclMachine nccl_machine(const Router& router, const Placement& placement) {
  const Topology& topology = router.topology();
  NcclMachine machine;
  machine.ranks = static_cast<int>(placement.ranks.size());
  machine.node_of_rank = nodes_of_ranks(router, placement);
  for (const int node : machine.node_of_rank) machine.nodes = std::max(machine.nodes, node + 1);
  machine.ranks_per_node = std::max(1, machine.ranks / machine.nodes);
  machine.cpu = cpu_maker(topology);
  machine.is_amd = is_amd(topology, placement);
  for (const NodeId gpu : placement.ranks) {
    const std::string& model = topology.node(gpu).model;
    const int known = compute_capability(model);
    const int capability = known == 0 ? kUnknownCapability : known;
    machine.newest_capability = std::max(machine.newest_capability, known);
    machine.alike = machine.alike && (machine.capability == 0 || machine.capability == capability);
    machine.capability =
        machine.capability == 0 ? capability : std::min(machine.capability, capability);
  }
  machine.era = era_of(machine.capability);
  if (machine.nodes > 1) {
    find_nics(router, placement, machine);
    std::set<int> nodes_with_nics;
    const std::vector<std::set<NodeId>> nics = near_nics(topology, placement.ranks);
    for (std::size_t rank = 0; rank < placement.ranks.size(); ++rank) {
      const bool is_near = !nics[rank].empty();
      if (is_near) nodes_with_nics.insert(machine.node_of_rank[rank]);
      machine.near_nics = machine.near_nics && is_near;
    }
    machine.shared_near_nics = static_cast<int>(nodes_with_nics.size()) == machine.nodes;
  }
  for (const Node& node : topology.nodes) {
    if (!node.combines) continue;
    (node.kind == NodeKind::nvswitch ? machine.switches_combine : machine.network_combines) = true;
  }
  return machine;
}

}  // namespace espalier
