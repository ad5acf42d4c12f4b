// SPDX-License-Identifier: Apache-2.0
// What `nvidia-smi topo -m` prints, and the same of other vendors' tools: for every pair of GPUs
// and network cards by which way they reach each other. `rocm-smi --showtopo` prints it as tables
// of hops and link types.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <regex>
#include <set>
#include <utility>

#include "core/units.h"
#include "core/words.h"
#include "formats/format.h"
#include "formats/known_gpus.h"
#include "formats/machine_parts.h"
#include "formats/peer_tables.h"
#include "formats/text_words.h"
#include "topologies/load.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxDevices = 256;

/// From near to far; `fabric` is an NVLink, xGMI link or another vendor's.
enum class Way : std::uint8_t { self, fabric, pix, pxb, phb, node, sys };

struct Cell {
  Way way = Way::sys;
  int links = 0;  ///< of the fabric
  bool operator==(const Cell&) const = default;
};

struct Device {
  std::string name;
  bool is_gpu = false;
  int numa = -1;
  int line = 0;
  std::vector<std::optional<Cell>> cells;  ///< by device
};

bool is_gpu_name(std::string_view name) {
  return name.starts_with("GPU") && name.size() > 3 &&
         std::ranges::all_of(name.substr(3), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> texts_of(const std::vector<std::string_view>& words) {
  return {words.begin(), words.end()};
}

/// GPU0GPU1 and PXBNODE, where a paste has lost the tabs, are taken apart.
std::vector<std::string> pieces_of(const std::string& line) {
  static const std::regex kGlued(
      "(GPU[0-9]+(?=GPU|NIC|mlx|CPU)|(?:NV[0-9]+|PIX|PXB|PHB|NODE|SYS|SOC)"
      "(?=NV[0-9]|PIX|PXB|PHB|NODE|SYS|SOC))");
  const std::string taken_apart = std::regex_replace(line, kGlued, "$1 ");
  return texts_of(words_of(taken_apart));
}

std::optional<Cell> cell_of(const std::string& word) {
  static const std::map<std::string, Way> kWays = {
      {"X", Way::self},    {"PIX", Way::pix},    {"PSB", Way::pix}, {"PXB", Way::pxb},
      {"PHB", Way::phb},   {"NODE", Way::node},  {"SYS", Way::sys}, {"SOC", Way::sys},
      {"MX", Way::fabric}, {"XGMI", Way::fabric}};
  if (const auto known = kWays.find(word); known != kWays.end()) {
    return Cell{known->second, known->second == Way::fabric ? 1 : 0};
  }
  if (!word.starts_with("NV")) return std::nullopt;
  const auto links = parse_number(word.substr(2));
  if (!links || *links < 1 || *links > 64 || *links != static_cast<int>(*links))
    return std::nullopt;
  return Cell{Way::fabric, static_cast<int>(*links)};
}

class Reader {
 public:
  explicit Reader(const MachineText& given) : given_(given) {
    if (given.text.size() > kMaxBytes) {
      fail(0, fmt::format("the text has {} bytes, more than the {} that are read",
                          given.text.size(), kMaxBytes));
    }
    for (const std::string& line : split(without_colours(given.text), '\n')) lines_.push_back(line);
  }

  Topology read() {
    is_amd_ = given_.text.find("between two GPUs") != std::string_view::npos;
    is_amd_ ? read_rocm() : read_matrix();
    if (gpus() == 0)
      fail(0, "no table of GPUs was found", "expected what `nvidia-smi topo -m` prints");
    problems_.throw_if_any();
    check();
    problems_.throw_if_any();
    make_machine();
    const std::vector<Diagnostic> wrong = check_topology(machine_);
    if (!wrong.empty()) throw Error(ErrorKind::input, wrong);
    return std::move(machine_);
  }

 private:
  [[noreturn]] void fail(int line, std::string message, std::string suggestion = {}) const {
    throw Error(
        ErrorKind::input,
        {Diagnostic{"", std::move(message), std::move(suggestion), {given_.file, line, 0}}});
  }
  void problem(int line, std::string message) {
    problems_.add({given_.file, line, 0}, std::move(message));
  }

  std::ptrdiff_t gpus() const { return std::ranges::count(devices_, true, &Device::is_gpu); }

  std::optional<std::size_t> find(const std::string& name) const {
    const auto at = std::ranges::find(devices_, name, &Device::name);
    if (at == devices_.end()) return std::nullopt;
    return static_cast<std::size_t>(at - devices_.begin());
  }

  /// The header names the devices, up to "CPU Affinity"; each row begins with one of them.
  void read_matrix() {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::vector<std::string> words = pieces_of(lines_[i]);
      const int line = static_cast<int>(i) + 1;
      if (devices_.empty()) {
        read_header(words);
        continue;
      }
      const auto row = words.empty() ? std::nullopt : find(words.front());
      if (!row) {
        if (has_rows_) return;
        continue;
      }
      if (words.size() > 1 && words[1] == ":") return;  // a legend of names
      read_row(devices_[*row], words, line);
      has_rows_ = true;
    }
  }

  void read_header(const std::vector<std::string>& words) {
    if (words.empty() || !is_gpu_name(words.front())) return;
    for (const std::string& word : words) {
      const bool is_device = is_gpu_name(word) || word.starts_with("NIC") ||
                             word.starts_with("mlx") || word.starts_with("hfi") ||
                             word.starts_with("bnxt") || word.starts_with("irdma");
      if (!is_device) break;
      Device device;
      device.name = word;
      device.is_gpu = is_gpu_name(word);
      devices_.push_back(device);
    }
    if (devices_.size() > kMaxDevices) fail(0, fmt::format("more than {} devices", kMaxDevices));
  }

  void read_row(Device& device, const std::vector<std::string>& words, int line) {
    if (!device.cells.empty()) {
      problem(line, fmt::format("{} has two rows, the first on line {}", device.name, device.line));
      return;
    }
    device.line = line;
    std::size_t next = 1;
    while (device.cells.size() < devices_.size()) {
      const auto cell = next < words.size() ? cell_of(words[next]) : std::nullopt;
      if (!cell) {
        problem(line, next < words.size()
                          ? fmt::format("{}: {} is no way between two devices", device.name,
                                        quote(words[next]))
                          : fmt::format("{} has {} cells, but there are {} devices", device.name,
                                        device.cells.size(), devices_.size()));
        return;
      }
      device.cells.push_back(cell);
      ++next;
    }
    // "0-23 0": processors, then the NUMA node.
    if (next + 1 < words.size()) {
      const auto numa = parse_number(words[next + 1]);
      if (numa && *numa >= 0 && *numa < 1024) device.numa = static_cast<int>(*numa);
    }
  }

  /// "Link Type between two GPUs", and the NUMA nodes below.
  void read_rocm() {
    static const std::regex kNuma("GPU\\[([0-9]+)\\].*Numa (?:Node|Affinity):\\s*([0-9]+)");
    bool in_types = false;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const int line = static_cast<int>(i) + 1;
      if (lines_[i].find("====") != std::string::npos) {
        in_types = lines_[i].find("Link Type between two GPUs") != std::string::npos;
        continue;
      }
      std::smatch numa;
      if (std::regex_search(lines_[i], numa, kNuma)) {
        if (const auto at = find("GPU" + numa[1].str())) {
          devices_[*at].numa = static_cast<int>(parse_number(numa[2].str()).value_or(-1));
        }
        continue;
      }
      std::vector<std::string> words = texts_of(words_of(lines_[i]));
      if (!in_types || words.empty()) continue;
      if (devices_.empty()) {
        read_header(words);
        continue;
      }
      const auto row = find(words.front());
      if (!row) continue;
      for (std::size_t k = 1; k < words.size(); ++k) {
        if (words[k] == "0") words[k] = "X";
        if (words[k] == "PCIE") words[k] = "NODE";
      }
      read_row(devices_[*row], words, line);
    }
  }

  void check() {
    for (std::size_t a = 0; a < devices_.size(); ++a) {
      if (devices_[a].cells.empty()) {
        problem(0, fmt::format("{} is in the header, but has no row", devices_[a].name));
        return;
      }
    }
    for (std::size_t a = 0; a < devices_.size(); ++a) {
      if (devices_[a].cells[a]->way != Way::self) {
        problem(devices_[a].line,
                fmt::format("{} must have X in its own column", devices_[a].name));
      }
      for (std::size_t b = 0; b < a; ++b) {
        if (*devices_[a].cells[b] == *devices_[b].cells[a]) continue;
        problem(devices_[a].line,
                fmt::format("{} and {} reach each other in different ways, here and on line {}",
                            devices_[b].name, devices_[a].name, devices_[b].line));
      }
    }
  }

  /// Devices that are joined, by pairs.
  template <class Joined>
  std::vector<int> groups(const Joined& joined) const {
    std::vector<int> group(devices_.size());
    std::iota(group.begin(), group.end(), 0);
    for (std::size_t a = 0; a < devices_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const int from = group[a], to = group[b];
        if (from == to || !joined(devices_[a], devices_[b], devices_[a].cells[b]->way)) continue;
        std::ranges::replace(group, from, to);
      }
    }
    return group;
  }

  void make_machine() {
    machine_.name = given_.file;
    machine_.title = "read from a table of GPUs and the ways between them";
    machine_.profiles = built_in_profiles().profiles;
    machine_.peer_access = is_amd_ ? Topology::PeerAccess::all : Topology::PeerAccess::socket;
    add_devices();
    add_host();
    add_fabric();
  }

  void add_devices() {
    for (const Device& device : devices_) {
      const std::string name = lower_case(device.name);
      const bool is_numbered = name.starts_with("nic") || device.is_gpu;
      nodes_.push_back(add_node(machine_, is_numbered ? name : "nic_" + name,
                                device.is_gpu ? NodeKind::gpu : NodeKind::nic, 0, device.numa));
    }
  }

  /// The generation is that of 16 lanes of PCIe 4, since the table does not say.
  void add_pcie(NodeId a, NodeId b) { add_link(machine_, a, b, {"pcie4x16", 31.5}, 0.25); }

  /// A CPU for every NUMA node, or for every group of devices that no SYS divides, and a switch for
  /// the devices that meet below one.
  void add_host() {
    // An NVLink hides how the two are joined below it.
    const std::vector<int> sockets = groups([](const Device& a, const Device& b, Way way) {
      return a.numa >= 0 && b.numa >= 0 ? a.numa == b.numa : way != Way::sys;
    });
    const std::vector<int> bridges = groups([](const Device&, const Device&, Way way) {
      return way != Way::fabric && way <= Way::pxb;
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
    if (std::ranges::count(devices_, false, &Device::is_gpu) > 0) {
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
    for (const auto& cell : devices_[device].cells) links += cell->links;
    return links;
  }

  /// NVLinks go through switches where a GPU would need more than it can have.
  void add_fabric() {
    int most = 0, widest = 0;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      most = std::max(most, links_of(d));
      for (const auto& cell : devices_[d].cells) widest = std::max(widest, cell->links);
    }
    if (most == 0) {
      guess_models(nullptr);
      return;
    }
    const bool has_switch = !is_amd_ && most > kMostNvlinks;
    const NvlinkGeneration& links = nvlinks_by_number(has_switch ? widest : most);
    guess_models(is_amd_ ? nullptr : &links);
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
        const Cell& cell = *devices_[a].cells[b];
        if (cell.way != Way::fabric) continue;
        if (is_amd_) {
          add_link(machine_, nodes_[b], nodes_[a], {"xgmi3", 64}, 0.3);
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
      } else if (is_amd_) {
        gpu.model = "mi300x";
        fill_from_catalogue(gpu);
      }
    }
    if (given_.as != nullptr) return;
    note(fmt::format(
        "the table does not name the GPUs: {}; ':as=dgx-a100' after the file's name takes "
        "models and memory from that machine",
        is_amd_ ? "taken for MI300X"
        : links == nullptr
            ? "no model"
            : fmt::format("taken for {}, by the number of their NVLinks", links->model)));
  }

  const MachineText& given_;
  std::vector<std::string> lines_;
  std::vector<Device> devices_;
  std::vector<NodeId> nodes_;  ///< by device
  bool has_rows_ = false;
  bool is_amd_ = false;
  DiagnosticList problems_;
  Topology machine_;
};

bool looks_like_table(std::string_view text) {
  static const std::regex kHeader("(^|\\n)[ \\t]*GPU0[ \\t]*(GPU1|NIC|mlx|CPU|\\r?\\n)");
  const std::string head =
      without_colours(text.substr(0, std::min<std::size_t>(text.size(), 20'000)));
  return std::regex_search(head, kHeader) && !is_peer_table(text);
}

}  // namespace

const Format& smi_topology_format() {
  static const Format format = {
      .name = "smi-topology",
      .title = "tables of nvidia-smi topo -m, mx-smi topo -m and rocm-smi --showtopo",
      .recognises = looks_like_table,
      .read_machine = [](const MachineText& text) { return Reader(text).read(); }};
  return format;
}

}  // namespace espalier
