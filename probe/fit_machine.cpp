// SPDX-License-Identifier: Apache-2.0
#include "probe/fit_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "probe/fit_figures.h"
#include "probe/fit_parts.h"
#include "topologies/load.h"
#include "topologies/machine_file.h"

namespace espalier {
namespace {

constexpr const char* kMemory = "shared";

/// Puts a link on the medium that the memory is.
void share(Link& link) {
  link.duplex = Duplex::shared;
  link.medium = kMemory;
}

/// Of operands in memory, and of what processes get from each other (0: nothing).
MemoryRates sane_rates(const ArithmeticFigures& figures, double exchange_gbps) {
  const MemoryRates rates = fit_memory(figures);
  return {sane_gbps(rates.gbps), sane_or_0(rates.reduce_gbps), sane_or_0(exchange_gbps)};
}

SharedMemory fit_shared_memory(const Survey& survey) {
  SharedMemory memory{sane_rates(survey.together, survey.exchange.all_gbps)};
  for (const WorkingSetFigures& figures : survey.working_sets) {
    memory.working_sets.push_back({static_cast<double>(figures.bytes),
                                   sane_rates(figures.together, figures.exchange.all_gbps),
                                   sane_rates(figures.alone, figures.exchange.one_gbps)});
  }
  return memory;
}

/// No link over a memory is slower.
double fastest_gbps(const SharedMemory& memory) {
  double gbps = memory.gbps;
  for (const WorkingSet& set : memory.working_sets) gbps = std::max(gbps, set.all.gbps);
  return gbps;
}

/// Ranks on one device around a hub, its memory. Returns the ranks' nodes.
std::vector<NodeId> add_ranks(const Survey& survey, Topology& machine) {
  const MemoryRates alone = sane_rates(survey.alone.front(), survey.exchange.one_gbps);
  const SharedMemory memory = fit_shared_memory(survey);
  machine.memories[kMemory] = memory;
  std::vector<NodeId> ranks;
  for (int rank = 0; rank < survey.inventory.ranks_of_a_host(); ++rank) {
    ranks.push_back(add_node(machine, fmt::format("gpu{}", rank), NodeKind::gpu));
    Node& node = machine.nodes.back();
    node.access_gbps = alone.gbps;
    node.reduce_gbps = alone.reduce_gbps;
    node.exchange_gbps = alone.exchange_gbps;
    node.memory = kMemory;
    if (!survey.inventory.is_host) node.model = survey.inventory.devices.front().name;
  }
  const NodeId hub = add_node(machine, "memory", NodeKind::nvswitch);
  for (const NodeId rank : ranks) {
    share(add_link(machine, rank, hub, "memory", LinkClass::gpu_fabric, fastest_gbps(memory)));
  }
  return ranks;
}

/// The host's memory: the same one, or another across the device's PCIe link.
void add_host(const Survey& survey, Topology& machine, const std::vector<NodeId>& ranks) {
  const double memory_gbps = fastest_gbps(machine.memories[kMemory]);
  const NodeId host = add_node(machine, "cpu0", NodeKind::cpu);
  NodeId port = host;
  if (survey.inventory.is_host) {
    const Node& rank = machine.node(ranks.front());
    Node& cpu = machine.nodes.back();
    cpu.access_gbps = rank.access_gbps;
    cpu.reduce_gbps = rank.reduce_gbps;
    cpu.exchange_gbps = rank.exchange_gbps;
    cpu.memory = kMemory;
  } else {
    port = add_node(machine, "port", NodeKind::pcie_switch);
    const CopyFigures& copies = best_copies(survey);
    Link& link = add_link(machine, port, host, "port", LinkClass::host, 1);
    set_capacity(link, survey.inventory.devices.front().pcie_gbps, copies.to_host.front().gbps,
                 copies.from_host.front().gbps, copies.host_both_ways_gbps.front());
    const CopyFigures& kernel = survey.kernel;
    const double by_kernel = link.duplex == Duplex::half ? kernel.host_both_ways_gbps.front()
                                                         : std::min(kernel.to_host.front().gbps,
                                                                    kernel.from_host.front().gbps);
    for (const auto& [name, figures] : fitted_profiles(survey)) {
      set_link_profile(machine.profiles[name], "port", by_kernel / link.gbps,
                       figures->to_host.front().latency_s);
    }
  }
  for (const NodeId rank : ranks) {
    share(add_link(machine, rank, port, "host_memory", LinkClass::host, memory_gbps));
  }
}

void fit_shared(const Survey& survey, Topology& machine) {
  add_host(survey, machine, add_ranks(survey, machine));
  for (const auto& [name, figures] : fitted_profiles(survey)) {
    Profile& profile = machine.profiles[name];
    profile.forget_blocks();
    const double local_s = figures->local.latency_s;
    // What shares a device waits for it too: with all ranks at work, as in a collective.
    const double hop_s = std::max(local_s, figures->crowded_latency_s);
    profile.local_overhead_s = sane_latency_s(local_s);
    profile.reduce_overhead_s = sane_latency_s(survey.reduce_latency_s);
    set_link_profile(profile, "memory", 1, hop_s);
    set_link_profile(profile, "host_memory", 1, figures->to_host.front().latency_s);
    if (!survey.inventory.is_host) continue;
    // Threads add while they copy, whatever the profile's name, and nothing is staged. Messages are
    // added when they have come.
    profile.reduction =
        survey.inventory.has_messages ? ReductionMode::separate : ReductionMode::fused;
    profile.staging_overhead_s = 0;
  }
}

/// Hosts like this one around a network, each at the end of a link of what all of its ranks reach
/// together.
void fit_network(const Survey& survey, Topology& machine) {
  const NetworkFigures& network = *survey.network;
  const NodeId cpu = machine.find("cpu0").value();
  const NodeId nic = add_node(machine, "nic0", NodeKind::nic);
  add_link(machine, cpu, nic, "nic", LinkClass::host, fastest_gbps(machine.memories[kMemory]));
  const NodeId fabric = add_node(machine, "network", NodeKind::fabric);
  machine.nodes.back().host = -1;
  Link& link = add_link(machine, nic, fabric, "network", LinkClass::network, 1);
  const double alone_gbps = std::max(network.to.gbps, network.from.gbps);
  const double all_gbps = std::max(network.all_gbps, alone_gbps);
  const double both_gbps = std::max(network.all_both_gbps, network.both_gbps);
  set_capacity(link, 0, all_gbps, all_gbps, both_gbps);
  const double latency_s = std::max(network.to.latency_s, network.from.latency_s);
  for (const auto& [name, figures] : fitted_profiles(survey)) {
    set_link_profile(machine.profiles[name], "nic", 1, 0);
    set_link_profile(machine.profiles[name], "network", 1, latency_s);
  }
}

}  // namespace

std::vector<FittedProfile> fitted_profiles(const Survey& survey) {
  if (survey.inventory.is_host) {
    return {{"kernel", &survey.kernel}, {"copy_engine", &survey.kernel}, {"host", &survey.kernel}};
  }
  return {{"kernel", &survey.kernel},
          {"copy_engine", &best_copies(survey)},
          {"cuda_graph", &best_copies(survey)}};
}

const CopyFigures& best_copies(const Survey& survey) {
  return survey.copy_engine ? *survey.copy_engine : survey.kernel;
}

NodeId add_node(Topology& machine, std::string name, NodeKind kind) {
  Node node;
  node.name = std::move(name);
  node.kind = kind;
  machine.nodes.push_back(std::move(node));
  return static_cast<NodeId>(machine.nodes.size() - 1);
}

Link& add_link(Topology& machine, NodeId a, NodeId b, const std::string& kind, LinkClass link_class,
               double gbps, int count) {
  Link link;
  link.a = a;
  link.b = b;
  link.kind = kind;
  link.link_class = link_class;
  link.count = count;
  link.gbps = sane_gbps(gbps);
  return machine.links.emplace_back(std::move(link));
}

Topology fit_machine(const Survey& survey, const std::string& when) {
  const Inventory& inventory = survey.inventory;
  Topology machine;
  machine.name = inventory.name;
  machine.title =
      inventory.hosts > 1
          ? fmt::format("{} hosts with {} ranks each", inventory.hosts, inventory.ranks_of_a_host())
      : inventory.sharing > 1
          ? fmt::format("{} ranks on {}", inventory.sharing, inventory.devices.front().name)
          : fmt::format("{} x {}", inventory.ranks(), inventory.devices.front().name);
  machine.sources = {fmt::format("{}, {}", kProbedSource, when)};
  for (std::size_t i = 0; i < inventory.devices.size(); ++i) {
    const std::string& place = inventory.devices[i].place;
    if (place.empty()) continue;
    machine.sources.push_back(inventory.is_shared() ? "all ranks: " + place
                                                    : fmt::format("gpu{}: {}", i, place));
  }
  machine.profiles = built_in_profiles().profiles;
  if (inventory.is_shared()) {
    fit_shared(survey, machine);
  } else {
    fit_gpus(survey, machine);
  }
  if (!survey.network) return machine;
  fit_network(survey, machine);
  MachineFile file;
  for (const Node& node : machine.nodes) file.shared.push_back(node.host < 0);
  file.one = std::move(machine);
  file.max_hosts = inventory.hosts;
  return repeat_hosts(file, inventory.hosts);
}

}  // namespace espalier
