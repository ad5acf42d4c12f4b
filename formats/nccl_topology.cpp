// SPDX-License-Identifier: Apache-2.0
// The topology files of NCCL (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE; src/graph/xml.cc) and RCCL:
// CPUs, the PCIe tree below each, GPUs with their NVLinks or xGMI links, network cards. Cloud
// providers' files are partial: cards by PCI class, no <gpu> and no links.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/units.h"
#include "core/words.h"
#include "formats/format.h"
#include "formats/nccl_machine.h"
#include "formats/nccl_writer.h"
#include "formats/xml_text.h"
#include "topologies/topology.h"

namespace espalier {
namespace {

constexpr XmlRange kIds{-1, 1e6};
constexpr XmlRange kCounts{1, 1000};
constexpr XmlRange kWidths{0, 64};
/// What Linux says of lanes that it does not know.
constexpr std::string_view kUnknownWidth = "255";
/// Mbit/s; NCCL takes 0 and less as 10 Gbit/s.
constexpr XmlRange kSpeeds{-1, 1e9};

/// "0x03", "0x0302": GPUs; AMD has accelerators of class 0x12.
bool is_gpu_class(const std::string& pci_class) {
  return pci_class.starts_with("0x03") || pci_class.starts_with("0x12");
}

/// NCCL reads bus ids as numbers: nvidia-smi writes a domain with eight digits, others with four.
std::string bus_id_of(std::string_view text) {
  constexpr std::size_t kDigits = 4;
  std::string id = lower_case(text);
  std::size_t domain = id.find(':');
  if (domain == std::string::npos || id.find(':', domain + 1) == std::string::npos) return id;
  while (domain > kDigits && id.front() == '0') {
    id.erase(0, 1);
    --domain;
  }
  return id;
}

class Reader {
 public:
  explicit Reader(const MachineText& given) : given_(given), xml_(given.text, given.file) {}

  Topology read() {
    read_system(xml_.root());
    xml_.problems().throw_if_any();
    number_gpus();
    check_links();
    if (system_.cpus.empty()) xml_.problem(xml_.root(), "the system has no <cpu>");
    if (system_.gpus.empty()) {
      xml_.problem(xml_.root(), "the file has no GPU: no <gpu>, and no card of a GPU's PCI class",
                   "take a dump that NCCL writes while a job runs (NCCL_TOPO_DUMP_FILE)");
    }
    xml_.problems().throw_if_any();
    note_guesses();
    Topology machine = nccl_machine(system_, given_.file, given_.as);
    machine.notes.insert(machine.notes.begin(), notes_.begin(), notes_.end());
    const std::vector<Diagnostic> wrong = check_topology(machine);
    if (!wrong.empty()) throw Error(ErrorKind::input, wrong);
    return machine;
  }

 private:
  void note(pugi::xml_node node, const std::string& text) {
    notes_.push_back(fmt::format("{}:{}: {}", given_.file, xml_.where(node).line, text));
  }
  void unknown(pugi::xml_node node) {
    note(node,
         fmt::format("{} in {} is not read", element_name(node), element_name(node.parent())));
  }

  void note_guesses() {
    if (unknown_speeds_ > 0) {
      note(first_unknown_speed_,
           fmt::format(
               "no known speed or width of its link{}: 16 lanes of the third generation "
               "are taken for what is not known",
               unknown_speeds_ > 1 ? ", nor of " + counted(unknown_speeds_ - 1, "other") : ""));
    }
    // In files that NCCL is given, no GPU has one.
    if (ranks_.empty()) return;
    for (const pugi::xml_node node : without_rank_) {
      note(node, "<gpu> has no rank, as others have; NCCL would leave it out");
    }
  }

  void read_system(pugi::xml_node system) {
    if (std::string_view(system.name()) != "system") {
      xml_.problem(system,
                   fmt::format("the top element is {}, not <system>", element_name(system)));
      return;
    }
    const std::string version = attribute(system, "version");
    if (version != "1" && version != "2") {
      xml_.problem(system, version.empty()
                               ? "<system> has no 'version'"
                               : fmt::format("the version of <system> is {}, but must be 1 (NCCL) "
                                             "or 2 (RCCL)",
                                             quote(version)));
    }
    for (const pugi::xml_node node : system.children()) {
      if (node.type() != pugi::node_element) continue;
      const std::string_view name = node.name();
      if (name == "cpu") {
        read_cpu(node);
      } else if (name == "gpu" || name == "pci" || name == "nic") {
        xml_.problem(node, fmt::format("{} stands in <system>, but belongs in <cpu>{}",
                                       element_name(node), name == "gpu" ? " and <pci>" : ""));
      } else {
        unknown(node);
      }
    }
  }

  void read_cpu(pugi::xml_node node) {
    NcclSystem::Cpu cpu;
    cpu.numa = xml_.need_whole(node, "numaid", kIds).value_or(0);
    cpu.arch = attribute(node, "arch");
    cpu.vendor = attribute(node, "vendor");
    cpu.model = xml_.whole(node, "modelid", {0, 1e6}, 0);
    const std::string hash = attribute(node, "host_hash");
    const auto known = std::ranges::find(hashes_, hash);
    cpu.host = static_cast<int>(known - hashes_.begin());
    if (known == hashes_.end()) hashes_.push_back(hash);
    system_.hosts = static_cast<int>(hashes_.size());
    const int id = static_cast<int>(system_.cpus.size());
    system_.cpus.push_back(cpu);
    for (const pugi::xml_node child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      const std::string_view name = child.name();
      if (name == "pci") {
        read_pci(child, id, -1);
      } else if (name == "nic") {
        read_nic(child, id, -1, {});
      } else if (name == "gpu") {
        xml_.problem(child, "<gpu> stands in <cpu>, but belongs in the <pci> of its card");
      } else {
        unknown(child);
      }
    }
  }

  void read_pci(pugi::xml_node node, int cpu, int parent) {
    NcclSystem::Pci pci;
    pci.cpu = cpu;
    pci.parent = parent;
    pci.bus_id = bus_id_of(xml_.need(node, "busid").value_or(""));
    check_bus_id(node, system_.cpus[static_cast<std::size_t>(cpu)].host, pci.bus_id);
    read_speed(node, pci);
    pci.pci_class = lower_case(attribute(node, "class"));
    const std::string vendor = lower_case(attribute(node, "vendor"));
    if (!vendor.empty()) pci.device = vendor + ":" + lower_case(attribute(node, "device"));
    const int id = static_cast<int>(system_.pcis.size());
    const auto gpus = static_cast<std::size_t>(
        std::ranges::distance(node.children("gpu").begin(), node.children("gpu").end()));
    if (gpus > 1) {
      note(node, fmt::format("the card has {}, which share its link; each has the NVLinks that it "
                             "lists",
                             counted(gpus, "GPU")));
    }
    const bool has_cards = gpus > 0 || !node.child("nic").empty();
    pci.is_switch = !node.child("pci").empty();
    system_.pcis.push_back(pci);
    for (const pugi::xml_node child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      const std::string_view name = child.name();
      if (name == "pci") {
        read_pci(child, cpu, id);
      } else if (name == "gpu") {
        read_gpu(child, id);
      } else if (name == "nic") {
        read_nic(child, cpu, id, pci.pci_class);
      } else if (name != "pcilink") {
        unknown(child);
      }
    }
    if (has_cards || pci.is_switch || !is_gpu_class(pci.pci_class)) return;
    NcclSystem::Gpu gpu;
    gpu.pci = id;
    gpu.dev = static_cast<int>(system_.gpus.size());
    gpu.is_guess = true;
    system_.gpus.push_back(gpu);
    gpu_nodes_.push_back(node);
  }

  /// Links name the bus ids of GPUs; two cards of other kinds with one id are met in real files.
  void check_bus_id(pugi::xml_node node, int host, const std::string& bus_id) {
    const auto [first, is_new] = bus_ids_.try_emplace({host, bus_id}, node);
    if (is_new || bus_id.empty()) return;
    const int line = xml_.where(first->second).line;
    if (!node.child("gpu").empty() || !first->second.child("gpu").empty()) {
      xml_.problem(node, fmt::format("busid {} is given twice, first on line {}", bus_id, line));
    } else {
      note(node, fmt::format("busid {} is given twice, first on line {}", bus_id, line));
    }
  }

  /// As NCCL does: what is not known is 16 lanes of the third generation.
  void read_speed(pugi::xml_node node, NcclSystem::Pci& pci) {
    const std::string speed = attribute(node, "link_speed");
    const bool has_speed = !speed.empty() && !lower_case(speed).starts_with("unknown");
    if (has_speed) {
      const auto gtps = parse_number(speed.substr(0, speed.find(' ')));
      if (gtps && *gtps > 0 && *gtps <= 256) {
        pci.lane_gtps = *gtps;
      } else {
        xml_.problem(node, fmt::format("'link_speed' of <pci> is {}, which is no speed such as "
                                       "\"16.0 GT/s PCIe\"",
                                       quote(speed)));
      }
    }
    const int width = attribute(node, "link_width") == kUnknownWidth
                          ? 0
                          : xml_.whole(node, "link_width", kWidths, 0);
    if (width > 0) pci.width = width;
    if ((!has_speed || width == 0) && unknown_speeds_++ == 0) first_unknown_speed_ = node;
  }

  void check_rank(pugi::xml_node node) {
    const int rank = xml_.whole(node, "rank", kIds, -1);
    if (rank < 0) {
      without_rank_.push_back(node);
    } else if (!ranks_.insert(rank).second) {
      xml_.problem(node, fmt::format("rank {} is given twice", rank));
    }
  }

  void read_gpu(pugi::xml_node node, int pci) {
    NcclSystem::Gpu gpu;
    gpu.pci = pci;
    gpu.dev = xml_.need_whole(node, "dev", kIds).value_or(0);
    gpu.gcn = attribute(node, "gcn");
    gpu.device = system_.pcis[static_cast<std::size_t>(pci)].device;
    gpu.sm = xml_.whole(node, "sm", {0, 10000}, 0);
    check_rank(node);
    for (const pugi::xml_node child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      const std::string_view name = child.name();
      if (name == "nvlink" || name == "xgmi") {
        read_link(child, system_.pcis[static_cast<std::size_t>(pci)].bus_id, gpu);
      } else if (name == "c2c") {
        const int count = xml_.whole(child, "count", kCounts, 1);
        gpu.c2c_gbps += count * xml_.need_number(child, "bw", {1, 1e8}).value_or(0) / 1000;
      } else {
        unknown(child);
      }
    }
    system_.gpus.push_back(gpu);
    gpu_nodes_.push_back(node);
  }

  void read_link(pugi::xml_node node, const std::string& own, NcclSystem::Gpu& gpu) {
    const std::string target = bus_id_of(xml_.need(node, "target").value_or(""));
    const auto count = xml_.need_whole(node, "count", kCounts);
    const std::string target_class = lower_case(attribute(node, "tclass"));
    if (!target.empty() && target.find(':') == std::string::npos) {
      xml_.problem(node,
                   fmt::format("the target of {} is {}, which is no bus id", element_name(node),
                               quote(target)),
                   "write the busid of the other GPU's card");
      return;
    }
    if (!count || target.empty()) return;
    if (target == own) {
      note(node, fmt::format("the link leads to its own GPU, {}, and is left out", own));
      return;
    }
    NcclSystem::NvLink link{target, *count, NcclSystem::NvLink::To::gpu};
    const bool is_hidden = target.starts_with("fffffff:");
    if (target_class.starts_with("0x068001")) {
      link.to = NcclSystem::NvLink::To::cpu;
    } else if (target_class.starts_with("0x0680") || is_hidden) {
      link.to = NcclSystem::NvLink::To::nvswitch;
    }
    gpu.links.push_back(link);
  }

  void read_nic(pugi::xml_node node, int cpu, int pci, const std::string& pci_class) {
    for (const pugi::xml_node child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      if (std::string_view(child.name()) != "net") {
        unknown(child);
        continue;
      }
      NcclSystem::Net net;
      net.cpu = cpu;
      net.pci = pci;
      const double mbits = xml_.number(child, "speed", kSpeeds, 10000);
      net.gbps = (mbits <= 0 ? 10000 : mbits) / 8000;
      const std::string name = lower_case(attribute(child, "name"));
      if (pci_class.starts_with("0x0207") || name.starts_with("mlx")) {
        net.wire = NcclSystem::Net::Wire::infiniband;
      } else if (pci_class.starts_with("0x0208") || name.starts_with("hfi")) {
        net.wire = NcclSystem::Net::Wire::omnipath;
      }
      system_.nets.push_back(net);
    }
  }

  /// By host and device, whatever the order of their cards.
  void number_gpus() {
    std::vector<std::size_t> order(system_.gpus.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto key = [&](std::size_t i) {
      const NcclSystem::Gpu& gpu = system_.gpus[i];
      const int cpu = system_.pcis[static_cast<std::size_t>(gpu.pci)].cpu;
      return std::pair(system_.cpus[static_cast<std::size_t>(cpu)].host, gpu.dev);
    };
    std::ranges::stable_sort(order, {}, key);
    std::vector<NcclSystem::Gpu> sorted;
    std::vector<pugi::xml_node> nodes;
    for (const std::size_t i : order) {
      sorted.push_back(system_.gpus[i]);
      nodes.push_back(gpu_nodes_[i]);
    }
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (key(order[i]) != key(order[i - 1]) || sorted[i].is_guess) continue;
      note(nodes[i], fmt::format("dev {} is given twice, first on line {}; the GPUs are numbered "
                                 "as they stand",
                                 sorted[i].dev, xml_.where(nodes[i - 1]).line));
    }
    system_.gpus = std::move(sorted);
    gpu_nodes_ = std::move(nodes);
  }

  /// Both ends of a link between two GPUs of the file must have it alike.
  void check_links() {
    std::map<std::string, std::size_t> by_bus;
    const auto bus = [&](std::size_t g) {
      return system_.pcis[static_cast<std::size_t>(system_.gpus[g].pci)].bus_id;
    };
    for (std::size_t g = 0; g < system_.gpus.size(); ++g) by_bus[bus(g)] = g;
    std::map<std::pair<std::size_t, std::size_t>, int> links;  // from one GPU to another
    for (std::size_t g = 0; g < system_.gpus.size(); ++g) {
      for (const NcclSystem::NvLink& link : system_.gpus[g].links) {
        const auto other = by_bus.find(link.target);
        if (other != by_bus.end()) links[{g, other->second}] += link.count;
      }
    }
    std::set<std::size_t> named;
    for (const auto& [pair, count] : links) {
      const auto [a, b] = pair;
      const auto found = links.find({b, a});
      const int back = found == links.end() ? 0 : found->second;
      if (count == back || (b < a && back > 0) || !named.insert(a).second) continue;
      xml_.problem(gpu_nodes_[a],
                   fmt::format("GPUs {} and {} differ in the count of links between them: {} in "
                               "one direction, {} in the other",
                               a, b, count, back),
                   "every NVLink is listed by both of its GPUs");
    }
  }

  const MachineText& given_;
  XmlText xml_;
  NcclSystem system_;
  std::vector<pugi::xml_node> gpu_nodes_;  ///< by GPU
  std::vector<std::string> hashes_;        ///< by host
  std::map<std::pair<int, std::string>, pugi::xml_node> bus_ids_;
  std::set<int> ranks_;
  std::vector<pugi::xml_node> without_rank_;
  std::size_t unknown_speeds_ = 0;  ///< of <pci>
  pugi::xml_node first_unknown_speed_;
  std::vector<std::string> notes_;
};

bool looks_like_topology(std::string_view text) {
  const std::size_t at = text.find("<system");
  return at != std::string_view::npos && trim(text).starts_with('<');
}

}  // namespace

const Format& nccl_topology_format() {
  static const Format format = {
      .name = "nccl-topology",
      .title = "topology XML of NCCL and RCCL (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE)",
      .extension = ".xml",
      .recognises = looks_like_topology,
      .read_machine = [](const MachineText& text) { return Reader(text).read(); },
      .write_machine = write_nccl_topology};
  return format;
}

}  // namespace espalier
