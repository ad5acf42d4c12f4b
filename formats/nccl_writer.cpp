// SPDX-License-Identifier: Apache-2.0
#include "formats/nccl_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "core/words.h"
#include "formats/machine_differences.h"
#include "formats/nccl_system_of.h"
#include "formats/xml_text.h"
#include "topologies/path_tree.h"

namespace espalier {
namespace {

/// Elements that NCCL reads in the file of one host (src/graph/xml.h), and bytes of a value.
constexpr int kMaxElements = 256;
constexpr std::size_t kMaxName = 200;
/// MB/s of C2C, and Mbit/s of a network, that are read again.
constexpr double kMaxMegabytes = 1e8;
constexpr double kMaxMegabits = 1e9;

long long whole(double value, double most) { return std::llround(std::clamp(value, 1.0, most)); }

const Format& nccl_topology() {
  const auto found = std::ranges::find_if(
      all_formats(), [](const Format* format) { return format->name == "nccl-topology"; });
  return **found;
}

class XmlMaker {
 public:
  XmlMaker(const NcclSystem& system, const std::string& name) : system_(system) {
    is_amd_ = std::ranges::any_of(system.gpus, [](const auto& gpu) { return !gpu.gcn.empty(); });
    root_ = document_.append_child("system");
    set(root_, "version", is_amd_ ? "2" : "1");
    set(root_, "name", name.substr(0, kMaxName));
    for (std::size_t i = 0; i < system.pcis.size(); ++i) {
      const NcclSystem::Pci& pci = system.pcis[i];
      (pci.parent < 0 ? of_cpu_[pci.cpu] : of_pci_[pci.parent]).push_back(static_cast<int>(i));
    }
    for (std::size_t i = 0; i < system.cpus.size(); ++i) add_cpu(static_cast<int>(i));
  }

  std::string text() const {
    std::ostringstream out;
    document_.save(out, "  ", pugi::format_indent | pugi::format_no_declaration);
    // NCCL's parser takes what stands before "/>" for an attribute, even if it is a blank.
    std::string text = out.str();
    for (std::size_t at = 0; (at = text.find(" />", at)) != std::string::npos;) text.erase(at, 1);
    return text;
  }
  int elements() const { return elements_; }

 private:
  pugi::xml_node add(pugi::xml_node parent, const char* name) {
    ++elements_;
    return parent.append_child(name);
  }
  static void set(pugi::xml_node node, const char* name, const std::string& value) {
    node.append_attribute(name).set_value(value.c_str());
  }
  static void set(pugi::xml_node node, const char* name, long long value) {
    node.append_attribute(name).set_value(value);
  }

  void add_cpu(int number) {
    const NcclSystem::Cpu& cpu = system_.cpus[static_cast<std::size_t>(number)];
    const pugi::xml_node node = add(root_, "cpu");
    if (system_.hosts > 1) set(node, "host_hash", fmt::format("0x{:x}", cpu.host + 1));
    set(node, "numaid", cpu.numa);
    set(node, "arch", cpu.arch);
    if (!cpu.vendor.empty()) {
      set(node, "vendor", cpu.vendor);
      set(node, "familyid", cpu.family);
      set(node, "modelid", cpu.model);
    }
    for (const int pci : of_cpu_[number]) add_pci(node, pci);
  }

  void add_pci(pugi::xml_node parent, int number) {
    const NcclSystem::Pci& pci = system_.pcis[static_cast<std::size_t>(number)];
    const pugi::xml_node node = add(parent, "pci");
    set(node, "busid", pci.bus_id);
    set(node, "class", pci.pci_class);
    if (const std::size_t colon = pci.device.find(':'); colon != std::string::npos) {
      set(node, "vendor", pci.device.substr(0, colon));
      set(node, "device", pci.device.substr(colon + 1));
    }
    set(node, "link_speed", pci.has_speed ? fmt::format("{:.1f} GT/s PCIe", pci.lane_gtps) : "");
    set(node, "link_width", pci.has_speed ? pci.width : 0);
    for (std::size_t g = 0; g < system_.gpus.size(); ++g) {
      if (system_.gpus[g].pci == number) add_gpu(node, g);
    }
    add_nets(node, number);
    for (const int below : of_pci_[number]) add_pci(node, below);
  }

  void add_gpu(pugi::xml_node parent, std::size_t number) {
    const NcclSystem::Gpu& gpu = system_.gpus[number];
    const pugi::xml_node node = add(parent, "gpu");
    set(node, "dev", gpu.dev);
    if (gpu.sm > 0) set(node, "sm", gpu.sm);
    if (!gpu.gcn.empty()) {
      set(node, "gcn", gpu.gcn);
      set(node, "arch", 38911);  // features that HIP reports of GPUs of data centres
    }
    set(node, "rank", rank_of(number));
    set(node, "gdr", 1);
    for (const NcclSystem::NvLink& link : gpu.links) {
      const pugi::xml_node out = add(node, is_amd_ ? "xgmi" : "nvlink");
      set(out, "target", link.target);
      set(out, "count", link.count);
      using To = NcclSystem::NvLink::To;
      set(out, "tclass",
          link.to == To::nvswitch ? "0x068000"
          : link.to == To::cpu    ? "0x068001"
                                  : system_.pcis[static_cast<std::size_t>(gpu.pci)].pci_class);
    }
    if (gpu.c2c_gbps <= 0) return;
    const pugi::xml_node out = add(node, "c2c");
    set(out, "bw", whole(gpu.c2c_gbps * 1000, kMaxMegabytes));
    set(out, "count", 1);
  }

  /// By host and device number.
  int rank_of(std::size_t number) const {
    const auto host_of = [&](const NcclSystem::Gpu& gpu) {
      const int cpu = system_.pcis[static_cast<std::size_t>(gpu.pci)].cpu;
      return system_.cpus[static_cast<std::size_t>(cpu)].host;
    };
    const NcclSystem::Gpu& own = system_.gpus[number];
    return static_cast<int>(std::ranges::count_if(system_.gpus, [&](const auto& gpu) {
      return std::pair(host_of(gpu), gpu.dev) < std::pair(host_of(own), own.dev);
    }));
  }

  void add_nets(pugi::xml_node parent, int pci) {
    pugi::xml_node nic;
    int port = 0;
    for (const NcclSystem::Net& net : system_.nets) {
      if (net.pci != pci) continue;
      if (!nic) nic = add(parent, "nic");
      const pugi::xml_node node = add(nic, "net");
      using Wire = NcclSystem::Net::Wire;
      set(node, "name",
          fmt::format("{}{}",
                      net.wire == Wire::infiniband ? "mlx5_"
                      : net.wire == Wire::omnipath ? "hfi1_"
                                                   : "eth",
                      nets_));
      set(node, "dev", nets_++);
      set(node, "speed", whole(net.gbps * 8000, kMaxMegabits));
      set(node, "port", ++port);
      set(node, "gdr", 1);
    }
  }

  const NcclSystem& system_;
  pugi::xml_document document_;
  pugi::xml_node root_;
  std::map<int, std::vector<int>> of_cpu_, of_pci_;
  bool is_amd_ = false;
  int elements_ = 1;
  int nets_ = 0;
};

bool joins_hosts(const Topology& machine) {
  std::map<NodeId, std::set<int>> hosts_of_switch;
  for (const Link& link : machine.links) {
    if (net_of(machine, link) != Net::gpu_fabric) continue;
    const int a = machine.node(link.a).host, b = machine.node(link.b).host;
    if (machine.node(link.a).kind == NodeKind::nvswitch) hosts_of_switch[link.a].insert(b);
    if (machine.node(link.b).kind == NodeKind::nvswitch) hosts_of_switch[link.b].insert(a);
    const bool both_gpus =
        machine.node(link.a).kind == NodeKind::gpu && machine.node(link.b).kind == NodeKind::gpu;
    if (both_gpus && a != b) return true;
  }
  return std::ranges::any_of(hosts_of_switch,
                             [](const auto& entry) { return entry.second.size() > 1; });
}

/// Each host as a machine of its own, with the nodes that all share.
std::vector<Topology> hosts_alone(const Topology& machine) {
  std::vector<Topology> alone(static_cast<std::size_t>(machine.hosts));
  std::vector<std::map<NodeId, NodeId>> kept(alone.size());
  const auto add = [&](std::size_t host, NodeId id) {
    kept[host][id] = static_cast<NodeId>(alone[host].nodes.size());
    alone[host].nodes.push_back(machine.node(id));
    if (machine.node(id).host >= 0) alone[host].nodes.back().host = 0;
  };
  for (std::size_t host = 0; host < alone.size(); ++host) {
    alone[host].name = machine.name;
    alone[host].profiles = machine.profiles;
    alone[host].peer_access = machine.peer_access;
    alone[host].memories = machine.memories;
  }
  for (NodeId id = 0; id < static_cast<NodeId>(machine.nodes.size()); ++id) {
    const int host = machine.node(id).host;
    for (std::size_t each = 0; each < alone.size(); ++each) {
      if (host < 0 || static_cast<std::size_t>(host) == each) add(each, id);
    }
  }
  for (const Link& link : machine.links) {
    const int host = std::max(machine.node(link.a).host, machine.node(link.b).host);
    if (host < 0) continue;
    const auto& nodes = kept[static_cast<std::size_t>(host)];
    const auto a = nodes.find(link.a), b = nodes.find(link.b);
    if (a == nodes.end() || b == nodes.end()) continue;
    Link copy = link;
    copy.a = a->second;
    copy.b = b->second;
    alone[static_cast<std::size_t>(host)].links.push_back(std::move(copy));
  }
  return alone;
}

/// Hosts whose file would be another one.
std::vector<int> hosts_unlike_first(const std::vector<Topology>& hosts, const std::string& first) {
  std::vector<int> unlike;
  for (std::size_t host = 1; host < hosts.size(); ++host) {
    const NcclDescription other = nccl_system_of(hosts[host]);
    if (XmlMaker(other.system, hosts[host].name).text() != first) {
      unlike.push_back(static_cast<int>(host));
    }
  }
  return unlike;
}

}  // namespace

Written write_nccl_topology(const Topology& machine) {
  const bool whole = machine.hosts > 1 && joins_hosts(machine);
  const std::vector<Topology> hosts = whole ? std::vector{machine} : hosts_alone(machine);
  const NcclDescription description = nccl_system_of(hosts.front());
  const XmlMaker xml(description.system, machine.name);
  Written written{xml.text(), {}};
  auto& notes = written.notes;
  if (whole) {
    notes.push_back(fmt::format(
        "all {} hosts are in the file, as NVLinks join them and NCCL's own dumps have it so; as "
        "NCCL_TOPO_FILE it takes one host: write the machine with nodes=1",
        machine.hosts));
  } else if (machine.hosts > 1) {
    const std::vector<int> unlike = hosts_unlike_first(hosts, written.text);
    notes.push_back(
        unlike.empty()
            ? fmt::format("the file is that of one host; all {} get the same", machine.hosts)
            : fmt::format("the file is that of host 0, from which hosts {} differ",
                          format_ranges(unlike)));
  }
  if (xml.elements() > kMaxElements) {
    notes.push_back(fmt::format("NCCL reads {} elements of such a file, and this one has {}",
                                kMaxElements, xml.elements()));
  }
  notes.push_back(
      "bus ids and names of network cards are made up: NCCL knows GPUs by their bus ids, so put in "
      "those of the machine (nvidia-smi, rocm-smi) before it reads the file");
  notes.insert(notes.end(), description.notes.begin(), description.notes.end());
  const Topology read = nccl_topology().read_machine({written.text, machine.name, nullptr});
  const std::vector<std::string> differences = machine_differences(hosts.front(), read);
  notes.insert(notes.end(), differences.begin(), differences.end());
  notes.push_back(
      "the file has no rates of memory and reductions, no efficiencies and latencies, no shape of "
      "a network and no limits of peer access; whoever reads it takes his own");
  return written;
}

}  // namespace espalier
