// SPDX-License-Identifier: Apache-2.0
#include "formats/nccl_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/words.h"
#include "formats/known_gpus.h"
#include "formats/machine_parts.h"
#include "formats/nccl_rates.h"
#include "topologies/load.h"

namespace espalier {
namespace {

class MachineMaker {
 public:
  MachineMaker(const NcclSystem& system, const Topology* as) : system_(system), as_(as) {
    machine_.hosts = system.hosts;
    machine_.profiles = built_in_profiles().profiles;
  }

  Topology make(const std::string& name) {
    machine_.name = name;
    machine_.title = "read from an NCCL topology file";
    add_cpus();
    add_gpus();
    add_switches();
    add_pcie();
    add_nets();
    add_fabric();
    if (as_ != nullptr) fill_fabric();
    set_peer_access();
    return std::move(machine_);
  }

 private:
  NodeId add_node(const std::string& name, NodeKind kind, int host, int numa) {
    return espalier::add_node(
        machine_, machine_.hosts > 1 && host >= 0 ? fmt::format("n{}.{}", host, name) : name, kind,
        host, numa);
  }

  void note(std::string text) { machine_.notes.push_back(std::move(text)); }

  void add_cpus() {
    std::map<std::pair<int, std::string>, int> names;
    for (const NcclSystem::Cpu& cpu : system_.cpus) {
      std::string name = cpu.numa >= 0 ? fmt::format("cpu{}", cpu.numa) : "cpu";
      const int before = names[{cpu.host, name}]++;
      if (before > 0) name += fmt::format("_{}", before);
      cpus_.push_back(add_node(name, NodeKind::cpu, cpu.host, std::max(cpu.numa, -1)));
    }
    for (std::size_t a = 0; a < cpus_.size(); ++a) {
      for (std::size_t b = a + 1; b < cpus_.size(); ++b) {
        if (system_.cpus[a].host != system_.cpus[b].host) continue;
        add_link(machine_, cpus_[a], cpus_[b], nccl_socket_rate(system_.cpus[a]), 0.3);
      }
    }
  }

  int host_of(int cpu) const { return system_.cpus[static_cast<std::size_t>(cpu)].host; }
  int numa_of(int cpu) const { return system_.cpus[static_cast<std::size_t>(cpu)].numa; }

  void add_gpus() {
    std::map<int, int> of_host;
    for (const NcclSystem::Gpu& gpu : system_.gpus) {
      const int cpu = system_.pcis[static_cast<std::size_t>(gpu.pci)].cpu;
      const int host = host_of(cpu);
      const NodeId id =
          add_node(fmt::format("gpu{}", of_host[host]++), NodeKind::gpu, host, numa_of(cpu));
      machine_.node(id).model = nccl_gpu_model(gpu);
      fill_from_catalogue(machine_.node(id));
      gpus_.push_back(id);
    }
  }

  /// Cards with several GPUs or ports, whose way up limits these together, are switches. A GPU that
  /// is alone on its card stands for the card.
  void add_switches() {
    pci_node_.assign(system_.pcis.size(), -1);
    std::map<int, int> of_host;
    for (std::size_t i = 0; i < system_.pcis.size(); ++i) {
      const NcclSystem::Pci& pci = system_.pcis[i];
      const auto at = static_cast<int>(i);
      const auto nets = std::ranges::count(system_.nets, at, &NcclSystem::Net::pci);
      const auto gpus = std::ranges::count(system_.gpus, at, &NcclSystem::Gpu::pci);
      if (!pci.is_switch && nets == 0 && gpus < 2) continue;
      const int host = host_of(pci.cpu);
      pci_node_[i] = add_node(fmt::format("pci{}", of_host[host]++), NodeKind::pcie_switch, host,
                              numa_of(pci.cpu));
    }
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      NodeId& card = pci_node_[static_cast<std::size_t>(system_.gpus[g].pci)];
      if (card < 0) {
        card = gpus_[g];
      } else {
        add_link(machine_, gpus_[g], card, on_card(), 0);
      }
    }
  }

  /// What joins a card with its GPUs and ports does not limit them.
  static LinkRate on_card() { return nccl_pcie_rate(64, 16); }

  void add_pcie() {
    for (std::size_t i = 0; i < system_.pcis.size(); ++i) {
      const NcclSystem::Pci& pci = system_.pcis[i];
      if (pci_node_[i] < 0) continue;
      const NodeId up = pci.parent < 0 ? cpus_[static_cast<std::size_t>(pci.cpu)]
                                       : pci_node_[static_cast<std::size_t>(pci.parent)];
      add_link(machine_, pci_node_[i], up, nccl_pcie_rate(pci.lane_gtps, pci.width), 0.25);
    }
  }

  /// A port of a card is a NIC; the ports of a card share its way to the host.
  void add_nets() {
    if (system_.nets.empty()) return;
    const NodeId network = add_node("network", NodeKind::fabric, -1, -1);
    std::map<int, int> of_host;
    for (const NcclSystem::Net& net : system_.nets) {
      const int host = host_of(net.cpu);
      const NodeId nic =
          add_node(fmt::format("nic{}", of_host[host]++), NodeKind::nic, host, numa_of(net.cpu));
      const NodeId at = net.pci < 0 ? cpus_[static_cast<std::size_t>(net.cpu)]
                                    : pci_node_[static_cast<std::size_t>(net.pci)];
      add_link(machine_, nic, at, on_card(), 0);
      add_link(machine_, nic, network, nccl_network_rate(net), 1.3);
    }
  }

  /// NVLinks and xGMI, each pair once; those to switches all to one node, as NCCL has it.
  void add_fabric() {
    std::map<std::string, std::size_t> by_bus;
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      by_bus[system_.pcis[static_cast<std::size_t>(system_.gpus[g].pci)].bus_id] = g;
    }
    std::optional<NodeId> nvswitch;
    std::map<std::pair<std::size_t, std::size_t>, int> counts;
    int absent = 0;
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      const NcclSystem::Gpu& gpu = system_.gpus[g];
      int to_switch = 0, to_cpu = 0;
      for (const NcclSystem::NvLink& link : gpu.links) {
        const auto other = by_bus.find(link.target);
        if (other != by_bus.end()) {
          if (g < other->second) counts[{g, other->second}] += link.count;
        } else if (link.to == NcclSystem::NvLink::To::nvswitch) {
          to_switch += link.count;
        } else if (link.to == NcclSystem::NvLink::To::cpu) {
          to_cpu += link.count;
        } else {
          absent += link.count;
        }
      }
      if (to_switch > 0) {
        if (!nvswitch) {
          nvswitch = add_node("nvswitch", NodeKind::nvswitch, machine_.hosts > 1 ? -1 : 0, -1);
          machine_.node(*nvswitch).combines = gpu.sm >= 90;
        }
        add_link(machine_, gpus_[g], *nvswitch, nccl_fabric_rate(gpu), 0.2, to_switch);
      }
      const NodeId cpu =
          cpus_[static_cast<std::size_t>(system_.pcis[static_cast<std::size_t>(gpu.pci)].cpu)];
      if (to_cpu > 0) add_link_once(gpus_[g], cpu, nccl_fabric_rate(gpu), to_cpu);
      if (gpu.c2c_gbps > 0) add_link_once(gpus_[g], cpu, {"nvlink_c2c", gpu.c2c_gbps / 0.8}, 1);
    }
    for (const auto& [pair, count] : counts) {
      add_link(machine_, gpus_[pair.first], gpus_[pair.second],
               nccl_fabric_rate(system_.gpus[pair.first]), 0.3, count);
    }
    if (absent > 0) {
      note(
          fmt::format("{} lead to GPUs that the file does not have; it was written for fewer GPUs "
                      "than the machine has",
                      counted(static_cast<std::size_t>(absent), "NVLink")));
    }
  }

  /// In place of a PCIe link between the two, if there is one: two nodes have one link.
  void add_link_once(NodeId a, NodeId b, const LinkRate& rate, int count) {
    std::erase_if(machine_.links, [&](const Link& other) {
      return (other.a == a && other.b == b) || (other.a == b && other.b == a);
    });
    add_link(machine_, a, b, rate, 0.3, count);
  }

  /// Models, and fabric links where the file has none, GPU by GPU in order.
  void fill_fabric() {
    const std::vector<NodeId> theirs = as_->gpus();
    if (theirs.size() < gpus_.size()) {
      throw Error(ErrorKind::usage,
                  fmt::format("'as' names {}, which has {}, but the file has {}", as_->name,
                              counted(theirs.size(), "GPU"), counted(gpus_.size(), "GPU")),
                  "name a machine with as many");
    }
    const auto is_fabric = [](const Link& link) {
      return link.link_class == LinkClass::gpu_fabric;
    };
    const bool has_fabric = std::ranges::any_of(machine_.links, is_fabric);
    std::map<NodeId, NodeId> ours;
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      fill_gpu(machine_.node(gpus_[g]), as_->node(theirs[g]));
      ours[theirs[g]] = gpus_[g];
    }
    if (has_fabric) return;
    std::size_t added = 0;
    const auto mine = [&](NodeId node) -> std::optional<NodeId> {
      if (const auto known = ours.find(node); known != ours.end()) return known->second;
      if (as_->node(node).kind != NodeKind::nvswitch) return std::nullopt;
      const NodeId id = add_node(as_->node(node).name, NodeKind::nvswitch, 0, -1);
      machine_.node(id).combines = as_->node(node).combines;
      return ours[node] = id;
    };
    for (const Link& link : as_->links) {
      if (!is_fabric(link)) continue;
      const auto a = mine(link.a), b = mine(link.b);
      if (!a || !b) continue;
      Link copy = link;
      copy.a = *a;
      copy.b = *b;
      machine_.links.push_back(copy);
      ++added;
    }
    note(fmt::format("{} of {} are taken for those of this machine", counted(added, "link"),
                     as_->name));
  }

  void set_peer_access() {
    const bool has_switch = std::ranges::any_of(
        machine_.nodes, [](const Node& node) { return node.kind == NodeKind::nvswitch; });
    const bool is_amd =
        std::ranges::any_of(system_.gpus, [](const auto& gpu) { return !gpu.gcn.empty(); });
    machine_.peer_access =
        has_switch || is_amd ? Topology::PeerAccess::all : Topology::PeerAccess::socket;
    const auto guessed = std::ranges::count(system_.gpus, true, &NcclSystem::Gpu::is_guess);
    if (guessed > 0 && as_ == nullptr) {
      note(
          fmt::format("{} are known by their PCI class alone, without NVLinks or models; "
                      "':as=dgx-h100' after the file's name takes these from that machine",
                      counted(static_cast<std::size_t>(guessed), "GPU")));
    }
  }

  const NcclSystem& system_;
  const Topology* as_;
  Topology machine_;
  std::vector<NodeId> cpus_, gpus_;
  std::vector<NodeId> pci_node_;  ///< by card or switch; -1: nothing of interest
};

}  // namespace

Topology nccl_machine(const NcclSystem& system, const std::string& name, const Topology* as) {
  return MachineMaker(system, as).make(name);
}

}  // namespace espalier
