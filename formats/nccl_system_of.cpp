// SPDX-License-Identifier: Apache-2.0
#include "formats/nccl_system_of.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "core/words.h"
#include "formats/nccl_choices.h"
#include "formats/nccl_rates.h"
#include "topologies/path_tree.h"
#include "topologies/route.h"

namespace espalier {
namespace {

/// Links of one GPU to another that are read again.
constexpr double kMaxLinksOfOne = 1000;
constexpr int kMaxNodesOfHost = 512;

class SystemMaker {
 public:
  explicit SystemMaker(const Topology& machine)
      : machine_(machine),
        router_(machine, machine.profile("kernel")),
        links_at_(machine.nodes.size()),
        parent_(machine.nodes.size(), -1),
        up_(machine.nodes.size(), -1),
        pci_of_(machine.nodes.size(), -1) {
    for (LinkId id = 0; id < static_cast<LinkId>(machine.links.size()); ++id) {
      for (const NodeId end : {machine.link(id).a, machine.link(id).b})
        at(links_at_, end).push_back(id);
    }
  }

  NcclDescription make() {
    refuse_large();
    find_parents();
    add_cpus();
    for (const NodeId cpu : cpus_) add_below(cpu, -1);
    if (system_.gpus.empty()) refuse("the machine has no GPU", "");
    add_links();
    add_nets();
    note_lost_links();
    problems_.throw_if_any(ErrorKind::unsupported);
    system_.hosts = static_cast<int>(hosts_.size());
    return {std::move(system_), std::move(notes_)};
  }

 private:
  template <class Value>
  static Value& at(std::vector<Value>& values, NodeId node) {
    return values[static_cast<std::size_t>(node)];
  }
  template <class Value>
  static const Value& at(const std::vector<Value>& values, NodeId node) {
    return values[static_cast<std::size_t>(node)];
  }
  const Node& node(NodeId id) const { return machine_.node(id); }
  bool is_written(NodeId id) const { return node(id).host >= 0; }
  NodeId other_end(LinkId id, NodeId end) const {
    const Link& link = machine_.link(id);
    return link.a == end ? link.b : link.a;
  }
  void refuse(std::string message, std::string suggestion) {
    problems_.add({}, std::move(message), std::move(suggestion));
  }
  void note(std::string text) { notes_.push_back(std::move(text)); }
  std::string bus_id() {
    const int number = next_bus_++;
    return fmt::format("{:04x}:{:02x}:00.0", number / 255, number % 255 + 1);
  }

  void refuse_large() const {
    std::map<int, int> nodes;
    for (const Node& one : machine_.nodes) {
      if (one.host < 0 || ++nodes[one.host] <= kMaxNodesOfHost) continue;
      throw Error(ErrorKind::unsupported,
                  fmt::format("a host of {} has more than {} GPUs, CPUs and cards, and NCCL reads "
                              "256 elements of its file",
                              machine_.name, kMaxNodesOfHost),
                  "write a smaller machine");
    }
  }

  /// A tree of cards and switches below each CPU, by the fewest links.
  void find_parents() {
    std::vector<NodeId> queue;
    for (NodeId id = 0; id < static_cast<NodeId>(machine_.nodes.size()); ++id) {
      if (node(id).kind == NodeKind::cpu && is_written(id)) queue.push_back(id);
    }
    cpus_ = queue;
    for (std::size_t next = 0; next < queue.size(); ++next) {
      const NodeId above = queue[next];
      for (const LinkId id : at(links_at_, above)) {
        const NodeId below = other_end(id, above);
        const NodeKind kind = node(below).kind;
        const bool hangs =
            kind == NodeKind::gpu || kind == NodeKind::nic || kind == NodeKind::pcie_switch;
        if (!hangs || at(parent_, below) >= 0 || net_of(machine_, machine_.link(id)) != Net::host)
          continue;
        at(parent_, below) = above;
        at(up_, below) = id;
        if (kind == NodeKind::pcie_switch) queue.push_back(below);
      }
    }
    hang_orphans();
  }

  /// Cards that no PCIe link joins to a CPU, below one of their socket or the first one.
  void hang_orphans() {
    std::vector<std::string> orphans;
    for (NodeId id = 0; id < static_cast<NodeId>(machine_.nodes.size()); ++id) {
      const bool is_card = node(id).kind == NodeKind::gpu || node(id).kind == NodeKind::nic;
      if (!is_card || !is_written(id) || at(parent_, id) >= 0) continue;
      const auto best = std::ranges::find_if(cpus_, [&](NodeId cpu) {
        return node(cpu).host == node(id).host &&
               (node(cpu).numa == node(id).numa || node(id).numa < 0);
      });
      const auto any =
          std::ranges::find_if(cpus_, [&](NodeId cpu) { return node(cpu).host == node(id).host; });
      at(parent_, id) = best != cpus_.end() ? *best : any != cpus_.end() ? *any : kMadeUp;
      orphans.push_back(node(id).name);
    }
    if (orphans.empty()) return;
    note(
        fmt::format("no CPU has a link to {}: the file hangs {} below one, with PCIe of unknown "
                    "speed",
                    shortened(orphans), orphans.size() == 1 ? "it" : "them"));
  }

  /// A host without CPUs gets one, for the cards that need it.
  void add_cpus() {
    std::map<int, std::vector<NodeId>> by_host;
    for (const NodeId cpu : cpus_) by_host[node(cpu).host].push_back(cpu);
    for (NodeId id = 0; id < static_cast<NodeId>(machine_.nodes.size()); ++id) {
      if (node(id).kind == NodeKind::gpu && is_written(id)) by_host.try_emplace(node(id).host);
    }
    for (const auto& [host, cpus] : by_host) {
      const int number = static_cast<int>(hosts_.size());
      hosts_.push_back(host);
      std::set<int> numas;
      for (const NodeId cpu : cpus) {
        if (node(cpu).numa >= 0) numas.insert(node(cpu).numa);
      }
      const bool are_numbered = numas.size() == cpus.size();
      const NcclSystem::Cpu type = cpu_of_host(host);
      for (std::size_t i = 0; i < std::max<std::size_t>(cpus.size(), 1); ++i) {
        NcclSystem::Cpu cpu = type;
        cpu.host = number;
        cpu.numa = are_numbered && !cpus.empty() ? node(cpus[i]).numa : static_cast<int>(i);
        const int id = static_cast<int>(system_.cpus.size());
        if (cpus.empty()) {
          made_up_[host] = id;
        } else {
          cpu_of_[cpus[i]] = id;
        }
        system_.cpus.push_back(cpu);
      }
    }
    if (made_up_.empty()) return;
    for (const auto& [host, cpu] : made_up_) add_made_up(host, cpu);
    note("the machine has no CPU, and NCCL needs one: the file has one that is made up");
  }

  /// What hangs on a CPU that the machine does not have.
  void add_made_up(int host, int cpu) {
    for (NodeId id = 0; id < static_cast<NodeId>(machine_.nodes.size()); ++id) {
      if (at(parent_, id) == kMadeUp && node(id).host == host) add_pci(id, cpu, -1);
    }
  }

  /// What joins the sockets of a host decides which CPUs these are.
  NcclSystem::Cpu cpu_of_host(int host) const {
    std::vector<std::string> kinds;
    std::vector<double> gbps;
    for (LinkId id = 0; id < static_cast<LinkId>(machine_.links.size()); ++id) {
      const Link& link = machine_.link(id);
      if (node(link.a).host != host && node(link.b).host != host) continue;
      if (net_of(machine_, link) == Net::host) kinds.push_back(link.kind);
      if (node(link.a).kind == NodeKind::cpu && node(link.b).kind == NodeKind::cpu) {
        gbps.push_back(router_.capacity_gbps(id));
      }
    }
    return nccl_cpu(kinds, gbps);
  }

  /// The cards and switches below a node, in the order of the machine.
  void add_below(NodeId above, int pci) {
    const int cpu = pci < 0 ? cpu_of_.at(above) : system_.pcis[static_cast<std::size_t>(pci)].cpu;
    std::vector<NodeId> below;
    for (const LinkId id : at(links_at_, above)) {
      const NodeId end = other_end(id, above);
      if (at(parent_, end) == above && at(up_, end) == id) below.push_back(end);
    }
    for (NodeId id = 0; id < static_cast<NodeId>(machine_.nodes.size()) && pci < 0; ++id) {
      if (at(parent_, id) == above && at(up_, id) < 0) below.push_back(id);
    }
    std::ranges::sort(below);
    for (const NodeId id : below) {
      const int own = add_pci(id, cpu, pci);
      if (node(id).kind == NodeKind::pcie_switch) add_below(id, own);
    }
  }

  int add_pci(NodeId id, int cpu, int parent) {
    NcclSystem::Pci pci;
    pci.cpu = cpu;
    pci.parent = parent;
    pci.bus_id = bus_id();
    pci.is_switch = node(id).kind == NodeKind::pcie_switch;
    const LinkId up = at(up_, id);
    if (up >= 0 && is_pcie(up)) {
      const PcieLanes lanes = nccl_lanes(machine_.link(up).kind, router_.capacity_gbps(up));
      pci.lane_gtps = lanes.gtps;
      pci.width = lanes.width;
    } else {
      pci.has_speed = false;
    }
    if (pci.is_switch) pci.pci_class = "0x060400";
    const int own = static_cast<int>(system_.pcis.size());
    pci_of_[static_cast<std::size_t>(id)] = own;
    system_.pcis.push_back(pci);
    if (node(id).kind == NodeKind::gpu) add_gpu(id, own);
    if (node(id).kind == NodeKind::nic) nics_.push_back(id);
    return own;
  }

  /// Not an NVLink to a CPU.
  bool is_pcie(LinkId id) const {
    const Link& link = machine_.link(id);
    return link.kind != "nvlink_c2c" && link.link_class != LinkClass::gpu_fabric;
  }

  void add_gpu(NodeId id, int pci) {
    NcclCard card = nccl_card_of(node(id).model);
    for (const LinkId link : at(links_at_, id)) {
      const Link& own = machine_.link(link);
      if (card.is_known || own.link_class != LinkClass::gpu_fabric) continue;
      card = nccl_card_with(own.kind, router_.capacity_gbps(link) / own.count);
      break;
    }
    if (!card.is_known) unknown_models_.insert(node(id).model);
    NcclSystem::Pci& place = system_.pcis[static_cast<std::size_t>(pci)];
    place.device = card.gpu.device;
    place.pci_class = card.pci_class;
    card.gpu.pci = pci;
    gpu_nodes_.push_back(id);
    system_.gpus.push_back(card.gpu);
  }

  void add_links() {
    std::vector<std::size_t> order(gpu_nodes_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::size_t i) { return gpu_nodes_[i]; });
    std::map<int, int> of_host;
    for (const std::size_t i : order) {
      system_.gpus[i].dev = of_host[node(gpu_nodes_[i]).host]++;
      for (const LinkId id : at(links_at_, gpu_nodes_[i])) add_link(i, id);
    }
    if (unknown_models_.empty()) return;
    std::vector<std::string> names;
    for (const std::string& model : unknown_models_)
      names.push_back(model.empty() ? "of no model" : model);
    note(
        fmt::format("NCCL's file has no term for GPUs {}: what it says of them follows from their "
                    "links",
                    join(names, ", ")));
  }

  void add_link(std::size_t gpu_number, LinkId id) {
    NcclSystem::Gpu& gpu = system_.gpus[gpu_number];
    const Link& link = machine_.link(id);
    const NodeId end = other_end(id, gpu_nodes_[gpu_number]);
    if (link.kind == "nvlink_c2c" && node(end).kind == NodeKind::cpu) {
      gpu.c2c_gbps += router_.capacity_gbps(id);
      return;
    }
    if (link.link_class != LinkClass::gpu_fabric) return;
    if (gpu.sm == 0 && gpu.gcn.empty()) {
      if (!unsaid_kinds_.insert(link.kind).second) return;
      refuse(fmt::format("NCCL has no GPU with links of kind {}, such as that of {} to {}",
                         link.kind, node(gpu_nodes_[gpu_number]).name, node(end).name),
             "name a machine whose GPUs have NVLinks or xGMI links");
      return;
    }
    NcclSystem::NvLink out;
    out.count = static_cast<int>(
        std::clamp(std::round(router_.capacity_gbps(id) / kernel_gbps(nccl_fabric_rate(gpu))), 1.0,
                   kMaxLinksOfOne));
    if (out.count != link.count) recounted_.push_back(link_name(machine_, id, true));
    if (node(end).kind == NodeKind::gpu) {
      if (!is_written(end)) return;
      out.target = system_.pcis[static_cast<std::size_t>(at(pci_of_, end))].bus_id;
    } else if (node(end).kind == NodeKind::nvswitch) {
      out.to = NcclSystem::NvLink::To::nvswitch;
      auto& own = switch_bus_[end];
      if (own.empty()) own = bus_id();
      out.target = own;
    } else if (node(end).kind == NodeKind::cpu) {
      out.to = NcclSystem::NvLink::To::cpu;
      auto& own = switch_bus_[end];
      if (own.empty()) own = bus_id();
      out.target = own;
    } else {
      return;
    }
    gpu.links.push_back(out);
  }

  /// A port for each of the links that a card has to a network.
  void add_nets() {
    for (const NodeId nic : nics_) {
      const int pci = at(pci_of_, nic);
      NcclSystem::Pci& card = system_.pcis[static_cast<std::size_t>(pci)];
      card.pci_class = "0x020000";
      bool has_port = false;
      for (const LinkId id : at(links_at_, nic)) {
        const Link& link = machine_.link(id);
        if (node(other_end(id, nic)).kind != NodeKind::fabric) continue;
        NcclSystem::Net net;
        net.cpu = card.cpu;
        net.pci = pci;
        net.gbps = link.gbps;
        if (link.kind.starts_with("ib_")) {
          net.wire = NcclSystem::Net::Wire::infiniband;
          card.pci_class = "0x020700";
        } else if (link.kind.starts_with("omnipath")) {
          net.wire = NcclSystem::Net::Wire::omnipath;
          card.pci_class = "0x020800";
        }
        for (int port = 0; port < link.count; ++port) system_.nets.push_back(net);
        has_port = true;
      }
      if (!has_port) note(fmt::format("{} joins no network and is left out", node(nic).name));
    }
  }

  /// Links that a tree of cards, and one network for all, do not have.
  void note_lost_links() {
    std::vector<std::string> second, wired, trunks, shared;
    for (LinkId id = 0; id < static_cast<LinkId>(machine_.links.size()); ++id) {
      const Link& link = machine_.link(id);
      const bool is_ours = is_written(link.a) || is_written(link.b);
      if (!is_ours) continue;
      const NodeKind a = node(link.a).kind, b = node(link.b).kind;
      const std::string name = node(link.a).name + "-" + node(link.b).name;
      // Whoever reads that a CPU is a POWER knows that of an X-bus.
      if (link.duplex != Duplex::full && link.kind != "xbus") shared.push_back(name);
      if (net_of(machine_, link) == Net::host && is_pcie(id) &&
          !(a == NodeKind::cpu && b == NodeKind::cpu) && at(up_, link.a) != id &&
          at(up_, link.b) != id) {
        second.push_back(name);
      }
      if ((a == NodeKind::gpu && b == NodeKind::fabric) ||
          (b == NodeKind::gpu && a == NodeKind::fabric))
        wired.push_back(name);
      if (a == NodeKind::nvswitch && b == NodeKind::nvswitch) trunks.push_back(name);
    }
    if (!second.empty())
      note(fmt::format("a card hangs in one place of NCCL's tree: left out {}", shortened(second)));
    if (!wired.empty())
      note(fmt::format("NCCL reaches networks through cards: left out {}", shortened(wired)));
    if (!trunks.empty())
      note(fmt::format("all NVSwitches are one to NCCL: left out {}", shortened(trunks)));
    if (!shared.empty())
      note(fmt::format(
          "NCCL counts the rate of a link in each direction; these share it between both: {}",
          shortened(shared)));
    if (!recounted_.empty()) {
      note(fmt::format(
          "the count of links gives the rate, where it is no multiple of what NCCL counts "
          "for one: {}",
          shortened(recounted_)));
    }
  }

  /// "a, b, c and 5 more"
  static std::string shortened(const std::vector<std::string>& names) {
    constexpr std::size_t kShown = 4;
    if (names.size() <= kShown + 1) return join(names, ", ");
    return fmt::format("{} and {} more", join({names.begin(), names.begin() + kShown}, ", "),
                       names.size() - kShown);
  }

  static constexpr NodeId kMadeUp = -2;  ///< the parent of what has no CPU

  const Topology& machine_;
  Router router_;
  std::vector<std::vector<LinkId>> links_at_;  ///< by node
  std::vector<NodeId> parent_;                 ///< by node; -1: none
  std::vector<LinkId> up_;                     ///< by node: the link to its parent
  std::vector<int> pci_of_;                    ///< by node
  std::vector<NodeId> cpus_, nics_, gpu_nodes_;
  std::vector<int> hosts_;  ///< the machine's, by number in the file
  std::map<NodeId, int> cpu_of_;
  std::map<int, int> made_up_;  ///< CPUs by host
  std::map<NodeId, std::string> switch_bus_;
  std::set<std::string> unknown_models_, unsaid_kinds_;
  std::vector<std::string> recounted_;
  int next_bus_ = 0;
  NcclSystem system_;
  std::vector<std::string> notes_;
  DiagnosticList problems_;
};

}  // namespace

NcclDescription nccl_system_of(const Topology& machine) { return SystemMaker(machine).make(); }

}  // namespace espalier
