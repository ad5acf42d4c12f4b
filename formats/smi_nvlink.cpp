// SPDX-License-Identifier: Apache-2.0
// What `nvidia-smi nvlink -s` prints: the links of every GPU and whether they are up. It does not
// say where they lead.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/units.h"
#include "core/words.h"
#include "formats/format.h"
#include "formats/known_gpus.h"
#include "formats/machine_parts.h"
#include "formats/text_words.h"
#include "topologies/gpu_models.h"
#include "topologies/load.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxGpus = 256;
/// In place of a GPU's links.
constexpr std::string_view kNoneIsUp = "Unable to retrieve NVLink information as all links";

struct SmiGpu {
  std::string name;
  int line = 0;
  int active = 0;
  int inactive = 0;
  double gbps = 0;  ///< of an active link
};

class Reader {
 public:
  explicit Reader(const MachineText& given) : given_(given) {}

  Topology read() {
    if (given_.text.size() > kMaxBytes) {
      fail(fmt::format("the text has {} bytes, more than the {} that are read", given_.text.size(),
                       kMaxBytes));
    }
    std::size_t begin = 0;
    for (line_ = 1; begin < given_.text.size(); ++line_) {
      const std::size_t end = std::min(given_.text.find('\n', begin), given_.text.size());
      read_line(given_.text.substr(begin, end - begin));
      begin = end + 1;
    }
    problems_.throw_if_any();
    Topology machine = made();
    const std::vector<Diagnostic> wrong = check_topology(machine);
    if (!wrong.empty()) throw Error(ErrorKind::input, wrong);
    return machine;
  }

 private:
  [[noreturn]] void fail(std::string message, std::string suggestion = {}) const {
    throw Error(ErrorKind::input,
                {{"", std::move(message), std::move(suggestion), {given_.file, 0, 0}}});
  }
  void problem(std::string message) { problems_.add({given_.file, line_, 0}, std::move(message)); }

  /// "GPU 0: Tesla V100-SXM2-16GB (UUID: GPU-...)", " Link 0: 25.781 GB/s", " Link 1: <inactive>".
  void read_line(std::string_view line) {
    const auto words = words_of(line);
    if (words.size() >= 3 && words[0] == "GPU" && words[1].ends_with(":")) {
      const auto number = parse_whole(words[1].substr(0, words[1].size() - 1), 0, kMaxGpus);
      if (number != static_cast<std::int64_t>(gpus_.size())) {
        problem(fmt::format("GPU {} stands where GPU {} should",
                            quote(words[1].substr(0, words[1].size() - 1)), gpus_.size()));
      }
      if (gpus_.size() >= kMaxGpus) fail(fmt::format("more than {} GPUs", kMaxGpus));
      const auto begin = static_cast<std::size_t>(words[2].data() - line.data());
      const std::string_view name = line.substr(begin);
      gpus_.push_back({std::string(trim(name.substr(0, name.find(" (UUID")))), line_});
      return;
    }
    if (words.size() < 3 || words[0] != "Link") return;
    if (gpus_.empty()) return problem("a link stands before any GPU");
    SmiGpu& gpu = gpus_.back();
    if (words[2] == "<inactive>" || words[2] == "inActive" || words[2] == "inactive") {
      ++gpu.inactive;
      return;
    }
    const auto rate = parse_figure(words[2]);
    if (!rate || rate->value <= 0 || rate->value > 1000 || words.size() < 4 || words[3] != "GB/s") {
      problem(fmt::format("{} is neither a rate in GB/s nor <inactive>", quote(words[2])));
      return;
    }
    ++gpu.active;
    gpu.gbps = rate->value;
  }

  std::string what_it_has(const SmiGpu& gpu) const {
    return fmt::format("{} active and {} inactive links", gpu.active, gpu.inactive);
  }

  /// About the machine that is named; of two GPUs; or else of the machine of the catalogue that has
  /// such GPUs, as many, and of these the one whose links differ least.
  Topology made() const {
    if (given_.as != nullptr) return on_machine(*given_.as);
    if (gpus_.size() == 2) return of_two();
    std::optional<Topology> nearest;
    std::string name;
    for (const CatalogueEntry& entry : catalogue()) {
      const Topology known = load_topology(entry.name);
      if (!has_these_gpus(known)) continue;
      Topology machine = on_machine(known);
      if (nearest && nearest->notes.size() <= machine.notes.size()) continue;
      nearest = std::move(machine);
      name = entry.name;
    }
    if (!nearest) fail_without_machine();
    nearest->notes.insert(
        nearest->notes.begin(),
        fmt::format("the text does not say where links lead: taken for {}, which has such GPUs; "
                    "':as=' after the file's name takes another machine",
                    name));
    return *nearest;
  }

  bool has_these_gpus(const Topology& machine) const {
    const std::vector<NodeId> nodes = machine.gpus();
    if (nodes.size() != gpus_.size()) return false;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const std::string model = model_of_device(gpus_[i].name);
      if (model.empty() || !machine.node(nodes[i]).model.starts_with(model)) return false;
    }
    return true;
  }

  [[noreturn]] void fail_without_machine() const {
    fail("the text says how many NVLinks each GPU has, but not where they lead",
         fmt::format("name the machine: '{}:as=dgx1-v100'; `nvidia-smi topo -m` says more",
                     given_.file));
  }

  /// Counts are compared GPU by GPU. Of a bundle to a switch, links that are down are taken away;
  /// of links to several GPUs nobody can tell which, unless all are.
  Topology on_machine(Topology machine) const {
    const std::vector<NodeId> nodes = machine.gpus();
    if (nodes.size() != gpus_.size()) {
      fail(fmt::format("the text has {}, but {} has {}", counted(gpus_.size(), "GPU"), machine.name,
                       nodes.size()),
           fmt::format("name a machine with {} GPUs", gpus_.size()));
    }
    machine.name = given_.file;
    std::vector<NodeId> down;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const NodeId node = nodes[i];
      int links = 0;
      Link* bundle = nullptr;
      int bundles = 0;
      for (Link& link : machine.links) {
        if (link.link_class != LinkClass::gpu_fabric || (link.a != node && link.b != node))
          continue;
        links += link.count;
        bundle = &link;
        ++bundles;
      }
      const int active = gpus_[i].active;
      if (active == links) continue;
      const std::string name = machine.node(node).name;
      if (active > links) {
        machine.notes.push_back(fmt::format("{} has {}, but {} there: is it this machine?", name,
                                            what_it_has(gpus_[i]), links));
      } else if (active == 0) {
        down.push_back(node);
        machine.notes.push_back(fmt::format("{}: none of its {} links is up", name, links));
      } else if (bundles == 1) {
        const double share = static_cast<double>(active) / bundle->count;
        bundle->measured_gbps *= share;
        bundle->count = active;
        machine.notes.push_back(fmt::format("{}: {} of its {} links are up", name, active, links));
      } else {
        machine.notes.push_back(fmt::format(
            "{}: {} of its {} links are up, but not which: all are left; 'without=...' takes one "
            "away",
            name, active, links));
      }
    }
    std::erase_if(machine.links, [&](const Link& link) {
      return link.link_class == LinkClass::gpu_fabric &&
             (std::ranges::count(down, link.a) > 0 || std::ranges::count(down, link.b) > 0);
    });
    return machine;
  }

  /// Of two GPUs, all links join these.
  Topology of_two() const {
    if (gpus_[0].active != gpus_[1].active || gpus_[0].active == 0) fail_without_machine();
    Topology machine;
    machine.name = given_.file;
    machine.title = "read from the NVLinks of two GPUs";
    machine.profiles = built_in_profiles().profiles;
    const std::string model = model_of_device(gpus_[0].name);
    const NvlinkGeneration* known = nvlinks_of_model(model);
    const NvlinkGeneration& generation =
        known != nullptr ? *known : nvlinks_by_number(gpus_[0].active);
    for (int i = 0; i < 3; ++i) {
      Node node;
      node.kind = i < 2 ? NodeKind::gpu : NodeKind::cpu;
      node.name = i < 2 ? fmt::format("gpu{}", i) : "cpu0";
      node.numa = 0;
      if (i < 2) node.model = model_of_device(gpus_[static_cast<std::size_t>(i)].name);
      if (i < 2) fill_from_catalogue(node);
      machine.nodes.push_back(std::move(node));
    }
    add_link(machine, 0, 1, {generation.kind, gpus_[0].gbps}, 0.3, gpus_[0].active);
    for (NodeId gpu = 0; gpu < 2; ++gpu) add_link(machine, gpu, 2, {"pcie4x16", 31.5}, 0.25);
    machine.notes = {
        "the two GPUs' links are taken to join them",
        "the text does not say which PCIe this is: 16 lanes of generation 4, one socket"};
    return machine;
  }

  const MachineText& given_;
  std::vector<SmiGpu> gpus_;
  DiagnosticList problems_;
  int line_ = 0;
};

bool looks_like_links(std::string_view text) {
  const std::string_view head = text.substr(0, std::min<std::size_t>(text.size(), 20'000));
  const bool has_gpu = head.starts_with("GPU 0: ") || head.find("\nGPU 0: ") != head.npos;
  const bool has_links = head.find("Link 0: ") != head.npos &&
                         (head.find(" GB/s") != head.npos || head.find("nactive") != head.npos);
  return has_gpu && (has_links || head.find(kNoneIsUp) != head.npos);
}

}  // namespace

const Format& smi_nvlink_format() {
  static const Format format = {
      .name = "smi-nvlink",
      .title = "links of nvidia-smi nvlink -s, about a machine (:as=)",
      .recognises = looks_like_links,
      .read_machine = [](const MachineText& text) { return Reader(text).read(); }};
  return format;
}

}  // namespace espalier
