// SPDX-License-Identifier: Apache-2.0
// The machine of what `nvidia-smi topo -m` prints, and the same of other vendors' tools: for every
// pair of GPUs and network cards by which way they reach each other.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/units.h"
#include "core/words.h"
#include "formats/amd_smi_forms.h"
#include "formats/format.h"
#include "formats/known_gpus.h"
#include "formats/machine_parts.h"
#include "formats/peer_tables.h"
#include "formats/smi_table.h"
#include "topologies/load.h"

namespace espalier {
namespace {

SmiTable table_of(const MachineText& given) {
  return has_amd_smi_tables(given.text) ? read_amd_smi_table(given.text, given.file)
                                        : read_smi_table(given.text, given.file);
}

class MachineMaker {
 public:
  explicit MachineMaker(const MachineText& given) : given_(given), table_(table_of(given)) {}

  Topology make() {
    machine_.name = given_.file;
    machine_.title = "read from a table of GPUs and the ways between them";
    machine_.profiles = built_in_profiles().profiles;
    machine_.peer_access = !table_.is_amd             ? Topology::PeerAccess::socket
                           : table_.lacks_peer_access ? Topology::PeerAccess::fabric
                                                      : Topology::PeerAccess::all;
    machine_.notes = table_.notes;
    add_devices();
    add_host();
    add_fabric();
    const std::vector<Diagnostic> wrong = check_topology(machine_);
    if (!wrong.empty()) throw Error(ErrorKind::input, wrong);
    return std::move(machine_);
  }

 private:
  /// Devices that are joined, by pairs.
  template <class Joined>
  std::vector<int> groups(const Joined& joined) const {
    std::vector<int> group(devices_.size());
    std::iota(group.begin(), group.end(), 0);
    for (std::size_t a = 0; a < devices_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const int from = group[a], to = group[b];
        if (from == to || !joined(devices_[a], devices_[b], devices_[a].cells[b].way)) continue;
        std::ranges::replace(group, from, to);
      }
    }
    return group;
  }

  void add_devices() {
    for (const SmiDevice& device : devices_) {
      const bool is_numbered = device.is_gpu || device.name.starts_with("NIC");
      nodes_.push_back(add_node(machine_,
                                is_numbered ? lower_case(device.name) : "nic_" + device.name,
                                device.is_gpu ? NodeKind::gpu : NodeKind::nic, 0, device.numa));
    }
  }

  /// The generation is that of 16 lanes of PCIe 4, since the table does not say.
  void add_pcie(NodeId a, NodeId b) { add_link(machine_, a, b, {"pcie4x16", 31.5}, 0.25); }

  /// A CPU for every NUMA node, or for every group of devices that no SYS divides, and a switch for
  /// the devices that meet below one.
  void add_host() {
    // An NVLink hides how the two are joined below it.
    const std::vector<int> sockets = groups([](const SmiDevice& a, const SmiDevice& b, SmiWay way) {
      return a.numa >= 0 && b.numa >= 0 ? a.numa == b.numa : way != SmiWay::sys;
    });
    const std::vector<int> bridges = groups([](const SmiDevice&, const SmiDevice&, SmiWay way) {
      return way != SmiWay::fabric && way <= SmiWay::pxb;
    });
    std::map<int, NodeId> cpus, switches;
    std::map<int, int> numa_of;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const int known = devices_[d].numa;
      if (known >= 0) numa_of.try_emplace(sockets[d], known);
    }
    std::set<int> taken;
    const auto cpu_of = [&](std::size_t d) {
      const auto found = cpus.find(sockets[d]);
      if (found != cpus.end()) return found->second;
      int number = static_cast<int>(cpus.size());
      const auto numa = numa_of.find(sockets[d]);
      if (numa != numa_of.end()) number = numa->second;
      while (!taken.insert(number).second) ++number;
      return cpus[sockets[d]] =
                 add_node(machine_, fmt::format("cpu{}", number), NodeKind::cpu, 0, number);
    };
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const NodeId cpu = cpu_of(d);
      machine_.node(nodes_[d]).numa = machine_.node(cpu).numa;
      if (std::ranges::count(bridges, bridges[d]) == 1) {
        add_pcie(nodes_[d], cpu);
        continue;
      }
      if (!switches.contains(bridges[d])) {
        const NodeId made = add_node(machine_, fmt::format("pcie{}", switches.size()),
                                     NodeKind::pcie_switch, 0, machine_.node(cpu).numa);
        switches[bridges[d]] = made;
        add_pcie(made, cpu);
      }
      add_pcie(nodes_[d], switches[bridges[d]]);
    }
    for (auto a = cpus.begin(); a != cpus.end(); ++a) {
      for (auto b = cpus.begin(); b != a; ++b)
        add_link(machine_, b->second, a->second, {"upi_skylake", 62.4}, 0.3);
    }
    if (std::ranges::count(devices_, false, &SmiDevice::is_gpu) > 0) {
      const NodeId network = add_node(machine_, "network", NodeKind::fabric, -1, -1);
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        if (!devices_[d].is_gpu) add_link(machine_, nodes_[d], network, {"ib_edr", 12.5}, 1.3);
      }
      note("the table does not say how fast network cards are: 100 Gb/s each");
    }
    note(
        fmt::format("the table does not say which PCIe this is: 16 lanes of generation 4, and {} "
                    "between sockets as of Skylake",
                    "links"));
  }

  void note(std::string text) { machine_.notes.push_back(std::move(text)); }

  int links_of(std::size_t device) const {
    int links = 0;
    for (const auto& cell : devices_[device].cells) links += cell.links;
    return links;
  }

  /// NVLinks go through switches where a GPU would need more than it can have.
  void add_fabric() {
    int most = 0, widest = 0;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      most = std::max(most, links_of(d));
      for (const auto& cell : devices_[d].cells) widest = std::max(widest, cell.links);
    }
    if (most == 0) {
      guess_models(nullptr);
      return;
    }
    const bool has_switch = !table_.is_amd && most > kMostNvlinks;
    const NvlinkGeneration& links = nvlinks_by_number(has_switch ? widest : most);
    guess_models(table_.is_amd ? nullptr : &links);
    if (has_switch) {
      const NodeId nvswitch = add_node(machine_, "nvswitch", NodeKind::nvswitch, 0, -1);
      machine_.node(nvswitch).combines = std::string_view(links.kind) == "nvlink4";
      machine_.peer_access = Topology::PeerAccess::all;
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        if (devices_[d].is_gpu)
          add_link(machine_, nodes_[d], nvswitch, {links.kind, links.gbps}, 0.2, widest);
      }
      return;
    }
    for (std::size_t a = 0; a < devices_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const SmiCell& cell = devices_[a].cells[b];
        if (cell.way != SmiWay::fabric) continue;
        if (table_.is_amd) {
          add_link(machine_, nodes_[b], nodes_[a], {"xgmi3", 64}, 0.3, cell.links);
        } else {
          add_link(machine_, nodes_[b], nodes_[a], {links.kind, links.gbps}, 0.3, cell.links);
        }
      }
    }
  }

  /// Models: those of `as`, or of a generation that has so many links.
  void guess_models(const NvlinkGeneration* links) {
    std::vector<NodeId> theirs;
    if (given_.as != nullptr) theirs = given_.as->gpus();
    std::size_t next = 0;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (!devices_[d].is_gpu) continue;
      Node& gpu = machine_.node(nodes_[d]);
      if (next < theirs.size()) {
        fill_gpu(gpu, given_.as->node(theirs[next++]));
      } else if (links != nullptr) {
        gpu.model = links->model;
        fill_from_catalogue(gpu);
      } else if (table_.is_amd) {
        gpu.model = "mi300x";
        fill_from_catalogue(gpu);
      }
    }
    if (given_.as != nullptr) return;
    note(fmt::format(
        "the table does not name the GPUs: {}; ':as=dgx-a100' after the file's name takes "
        "models and memory from that machine",
        table_.is_amd ? "taken for MI300X"
        : links == nullptr
            ? "no model"
            : fmt::format("taken for {}, by the number of their NVLinks", links->model)));
  }

  const MachineText& given_;
  const SmiTable table_;
  const std::vector<SmiDevice>& devices_ = table_.devices;
  std::vector<NodeId> nodes_;  ///< by device
  Topology machine_;
};

bool looks_like_table(std::string_view text) {
  return has_amd_smi_tables(text) || (has_smi_table(text) && !is_peer_table(text));
}

}  // namespace

const Format& smi_topology_format() {
  static const Format format = {
      .name = "smi-topology",
      .title =
          "tables of nvidia-smi topo -m, mx-smi topo -m, rocm-smi --showtopo and amd-smi topology",
      .recognises = looks_like_table,
      .read_machine = [](const MachineText& text) { return MachineMaker(text).make(); }};
  return format;
}

}  // namespace espalier
