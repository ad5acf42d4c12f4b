// SPDX-License-Identifier: Apache-2.0
#include "probe/fit_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "probe/fit_figures.h"
#include "probe/fit_parts.h"
#include "topologies/gpu_models.h"
#include "topologies/load.h"
#include "topologies/machine_file.h"

namespace espalier {
namespace {

/// Ranks that have their buffers in one memory: all that share a device or, of processes, those of
/// a socket.
struct Neighbours {
  std::string suffix;  ///< of names: the number of the socket where there are several
  int numa = -1;
  std::vector<int> numbers;  ///< of the ranks
  double share = 1;          ///< of the ranks of a host
  std::vector<NodeId> ranks = {};
  NodeId host = 0;  ///< the host's memory next to them

  std::string memory() const { return "shared" + suffix; }
};

std::vector<Neighbours> neighbours(const Inventory& inventory) {
  const std::vector<std::vector<int>> groups = inventory.ranks_by_socket();
  if (groups.size() == 1) return {{"", -1, groups.front()}};
  std::vector<Neighbours> all;
  for (const std::vector<int>& numbers : groups) {
    const auto socket = static_cast<int>(all.size());
    all.push_back({fmt::format("{}", socket), socket, numbers,
                   static_cast<double>(numbers.size()) / inventory.ranks_of_a_host()});
  }
  return all;
}

/// Puts a link on the medium that the memory is.
void share(Link& link, const std::string& memory) {
  link.duplex = Duplex::shared;
  link.medium = memory;
}

/// Of operands in memory, and of what processes get from each other (0: nothing); a share of it.
MemoryRates sane_rates(const ArithmeticFigures& figures, const ExchangeRates& exchange,
                       double share = 1) {
  const MemoryRates rates = fit_memory(figures);
  return {sane_gbps(share * rates.gbps),
          sane_or_0(share * rates.reduce_gbps),
          {sane_or_0(share * exchange.gbps), sane_or_0(share * exchange.unchanged_gbps),
           sane_or_0(share * exchange.passed_on_gbps)}};
}

/// All at once have been measured on all sockets at once, of which each has its share.
SharedMemory fit_shared_memory(const Survey& survey, double share) {
  SharedMemory memory{sane_rates(survey.together, survey.exchange.all, share)};
  for (const WorkingSetFigures& figures : survey.working_sets) {
    memory.working_sets.push_back({static_cast<double>(figures.bytes),
                                   sane_rates(figures.together, figures.exchange.all, share),
                                   sane_rates(figures.alone, figures.exchange.one)});
  }
  return memory;
}

/// No link over a memory is slower.
double fastest_gbps(const SharedMemory& memory) {
  double gbps = memory.gbps;
  for (const WorkingSet& set : memory.working_sets) gbps = std::max(gbps, set.all.gbps);
  return gbps;
}

/// The ranks of a host, in the order of their numbers.
void add_ranks(const Survey& survey, Topology& machine, std::vector<Neighbours>& sockets) {
  const MemoryRates alone = sane_rates(survey.alone.front(), survey.exchange.one);
  for (int rank = 0; rank < survey.inventory.ranks_of_a_host(); ++rank) {
    Neighbours& socket = *std::ranges::find_if(
        sockets, [&](const Neighbours& one) { return std::ranges::count(one.numbers, rank) > 0; });
    socket.ranks.push_back(add_node(machine, fmt::format("gpu{}", rank), NodeKind::gpu));
    Node& node = machine.nodes.back();
    node.numa = socket.numa;
    node.access_gbps = alone.gbps;
    node.reduce_gbps = alone.reduce_gbps;
    node.exchange = alone.exchange;
    node.memory = socket.memory();
    if (!survey.inventory.is_host)
      node.model = model_of_device(survey.inventory.devices.front().name);
  }
}

/// The ranks' hub, which is their memory.
void add_hub(const Survey& survey, Topology& machine, const Neighbours& socket) {
  const SharedMemory memory = fit_shared_memory(survey, socket.share);
  machine.memories[socket.memory()] = memory;
  const NodeId hub = add_node(machine, "memory" + socket.suffix, NodeKind::nvswitch);
  for (const NodeId rank : socket.ranks) {
    share(add_link(machine, rank, hub, "memory", LinkClass::gpu_fabric, fastest_gbps(memory)),
          socket.memory());
  }
}

/// The host's memory: the same one, or another across the device's PCIe link.
void add_host(const Survey& survey, Topology& machine, Neighbours& socket) {
  const double memory_gbps = fastest_gbps(machine.memories[socket.memory()]);
  const NodeId host =
      add_node(machine, fmt::format("cpu{}", std::max(socket.numa, 0)), NodeKind::cpu);
  socket.host = host;
  NodeId port = host;
  if (survey.inventory.is_host) {
    const Node& rank = machine.node(socket.ranks.front());
    Node& cpu = machine.nodes.back();
    cpu.numa = socket.numa;
    cpu.access_gbps = rank.access_gbps;
    cpu.reduce_gbps = rank.reduce_gbps;
    cpu.exchange = rank.exchange;
    cpu.memory = socket.memory();
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
  for (const NodeId rank : socket.ranks) {
    share(add_link(machine, rank, port, "host_memory", LinkClass::host, memory_gbps),
          socket.memory());
  }
}

/// What one rank sends to another group of ranks at best, from or to it.
double fastest_alone_gbps(const GroupFigures& figures) {
  return std::max(figures.to.gbps, figures.from.gbps);
}

/// Gives a link what two groups of ranks send each other, all at once.
void set_capacity_of_all(Link& link, const GroupFigures& figures) {
  const double all_gbps = std::max(figures.all_gbps, fastest_alone_gbps(figures));
  set_capacity(link, 0, all_gbps, all_gbps, std::max(figures.all_both_gbps, figures.both_gbps));
}

/// Every socket gets a switch, which its ranks reach at the rate of one of them, and other sockets
/// at that of all. Within a socket, routes take the hub, which is GPU fabric.
void join_sockets(const Survey& survey, Topology& machine, const std::vector<Neighbours>& sockets) {
  constexpr const char* kKind = "socket";
  const GroupFigures& figures = *survey.sockets;
  std::vector<NodeId> ports;
  for (const Neighbours& socket : sockets) {
    const NodeId port = add_node(machine, "socket" + socket.suffix, NodeKind::pcie_switch);
    for (const NodeId rank : socket.ranks) {
      set_capacity(add_link(machine, rank, port, kKind, LinkClass::host, 1), 0, figures.to.gbps,
                   figures.from.gbps, figures.both_gbps);
    }
    set_capacity_of_all(add_link(machine, socket.host, port, kKind, LinkClass::host, 1), figures);
    for (const NodeId other : ports) {
      set_capacity_of_all(add_link(machine, other, port, kKind, LinkClass::host, 1), figures);
    }
    ports.push_back(port);
  }
  const double latency_s =
      std::max({figures.to.latency_s, figures.from.latency_s, survey.kernel.crowded_latency_s});
  for (const auto& [name, copies] : fitted_profiles(survey)) {
    set_link_profile(machine.profiles[name], kKind, 1, latency_s);
  }
}

void fit_shared(const Survey& survey, Topology& machine) {
  std::vector<Neighbours> sockets = neighbours(survey.inventory);
  add_ranks(survey, machine, sockets);
  for (Neighbours& socket : sockets) {
    add_hub(survey, machine, socket);
    add_host(survey, machine, socket);
  }
  for (const FittedProfile& fitted : fitted_profiles(survey)) {
    Profile& profile = begin_profile(machine, fitted, survey);
    const CopyFigures& figures = *fitted.copies;
    // What shares a device waits for it too: with all ranks at work, as in a collective.
    const double hop_s = std::max(figures.local.latency_s, figures.crowded_latency_s);
    set_link_profile(profile, "memory", 1, hop_s);
    for (const StartUp::Longer& one : survey.longer_messages) {
      // None costs less than the shortest, whatever each was measured at.
      profile.links["memory"].longer.push_back(
          {one.above_bytes, sane_latency_s(std::max(hop_s, one.s))});
    }
    set_link_profile(profile, "host_memory", 1, figures.to_host.front().latency_s);
    if (!survey.inventory.is_host) continue;
    // Threads add while they copy, whatever the profile's name, and nothing is staged.
    if (!survey.inventory.has_messages) profile.reduction = ReductionMode::fused;
    profile.staging_overhead_s = 0;
  }
  if (survey.sockets) join_sockets(survey, machine, sockets);
}

/// Hosts like this one around a network, each at the end of a link of what all of its ranks reach
/// together, from whichever socket.
void fit_network(const Survey& survey, Topology& machine) {
  const GroupFigures& network = *survey.network;
  // Between a socket and the NIC nothing is slower than the network.
  const double near_gbps = 2 * std::max({network.all_both_gbps, network.both_gbps, network.all_gbps,
                                         fastest_alone_gbps(network)});
  const NodeId nic = add_node(machine, "nic0", NodeKind::nic);
  for (NodeId node = 0; node < nic; ++node) {
    if (machine.node(node).kind != NodeKind::cpu) continue;
    add_link(machine, node, nic, "nic", LinkClass::host, near_gbps);
  }
  const NodeId fabric = add_node(machine, "network", NodeKind::fabric);
  machine.nodes.back().host = -1;
  set_capacity_of_all(add_link(machine, nic, fabric, "network", LinkClass::network, 1), network);
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

Profile& begin_profile(Topology& machine, const FittedProfile& fitted, const Survey& survey) {
  Profile& profile = machine.profiles[fitted.name];
  profile.forget_blocks();
  profile.call_overhead_s = sane_latency_s(fitted.copies->call_s);
  profile.local_overhead_s = sane_latency_s(fitted.copies->local.latency_s);
  profile.reduce_overhead_s = sane_latency_s(survey.reduce_latency_s);
  // Messages are added when they have come.
  if (survey.inventory.has_messages) profile.reduction = ReductionMode::separate;
  return profile;
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
    machine.sources.push_back(
        inventory.is_shared()
            ? "all ranks: " + place
            : fmt::format("{}{}: {}", inventory.hosts > 1 ? "rank " : "gpu", i, place));
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
