// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/numbering.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <numeric>

#include "core/words.h"

namespace espalier {
namespace {

// GPUs tried in all places together: 16 that are all alike take 136.
constexpr int kMostTries = 200'000;
// Parts of a machine that are compared as a whole, which takes longer.
constexpr int kMostParts = 20'000;

std::size_t index(int number) { return static_cast<std::size_t>(number); }

/// The words of a model that tell generations apart, in lower case: "v100", "sxm2", "16gb".
std::vector<std::string> model_words(const std::string& model) {
  std::vector<std::string> words(1);
  for (const char c : model) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      words.emplace_back();
    } else {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  std::erase_if(words, [](const std::string& word) {
    return std::ranges::none_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
  });
  return words;
}

/// Whether a GPU that CUDA calls so may be of that model. What says nothing contradicts nothing.
bool may_be(const std::string& called, const std::string& model) {
  const std::vector<std::string> words = model_words(called);
  const std::vector<std::string> wanted = model_words(model);
  if (words.empty() || wanted.empty()) return true;
  const std::string name = wanted.front() == "gk210" ? "k80" : wanted.front();  // of a K80's chips
  return std::ranges::any_of(words, [&](const std::string& word) { return word.ends_with(name); });
}

bool is_nvlink(const Link& link) {
  return link.kind.starts_with("nvlink") && link.kind != "nvlink_c2c";
}

std::string links_text(int count) {
  return count == 0 ? "no NVLink" : counted(index(count), "NVLink");
}

class Matching {
 public:
  Matching(const GpuGraph& machine, const GpuGraph& computer)
      : machine_(machine), computer_(computer), taken_(computer.names.size(), false) {}

  std::optional<std::vector<int>> find() {
    if (machine_.size() <= computer_.size() && place(0)) return devices_;
    return std::nullopt;
  }

 private:
  bool fits(int gpu, int device) const {
    if (!may_be(computer_.models[index(device)], machine_.models[index(gpu)])) return false;
    if (machine_.to_switches[index(gpu)] != computer_.to_switches[index(device)]) return false;
    for (int other = 0; other < gpu; ++other) {
      if (machine_.nvlinks[index(gpu)][index(other)] !=
          computer_.nvlinks[index(device)][index(devices_[index(other)])])
        return false;
    }
    return true;
  }

  /// The GPU and all after it; its own number is tried first.
  bool place(int gpu) {
    if (gpu == machine_.size()) return true;
    for (int turn = -1; turn < computer_.size(); ++turn) {
      const int device = turn < 0 ? gpu : turn;
      if (taken_[index(device)] || (turn == gpu)) continue;
      if (++tries_ > kMostTries) return false;
      if (!fits(gpu, device)) continue;
      taken_[index(device)] = true;
      devices_.push_back(device);
      if (place(gpu + 1)) return true;
      devices_.pop_back();
      taken_[index(device)] = false;
    }
    return false;
  }

  const GpuGraph& machine_;
  const GpuGraph& computer_;
  std::vector<bool> taken_;
  std::vector<int> devices_;
  int tries_ = 0;
};

GpuGraph empty_graph(std::size_t gpus) {
  GpuGraph graph;
  graph.nvlinks.assign(gpus, std::vector<int>(gpus, 0));
  graph.to_switches.assign(gpus, 0);
  return graph;
}

/// Some of the GPUs, in that order.
GpuGraph part_of(const GpuGraph& all, const std::vector<int>& gpus) {
  GpuGraph part = empty_graph(gpus.size());
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    part.names.push_back(all.names[index(gpus[i])]);
    part.models.push_back(all.models[index(gpus[i])]);
    part.to_switches[i] = all.to_switches[index(gpus[i])];
    for (std::size_t j = 0; j < gpus.size(); ++j) {
      part.nvlinks[i][j] = all.nvlinks[index(gpus[i])][index(gpus[j])];
    }
  }
  return part;
}

}  // namespace

std::vector<NodeId> gpus_of_host(const Topology& machine, int host) {
  std::vector<NodeId> gpus = machine.gpus();
  std::erase_if(gpus, [&](NodeId gpu) { return machine.node(gpu).host != host; });
  return gpus;
}

int number_in_host(const Topology& machine, NodeId gpu) {
  const std::vector<NodeId> all = gpus_of_host(machine, machine.node(gpu).host);
  return static_cast<int>(std::ranges::find(all, gpu) - all.begin());
}

GpuGraph graph_of(const Topology& machine, const std::vector<NodeId>& gpus) {
  GpuGraph graph = empty_graph(gpus.size());
  for (const NodeId gpu : gpus) {
    graph.names.push_back(machine.node(gpu).name);
    graph.models.push_back(machine.node(gpu).model);
  }
  for (const Link& link : machine.links) {
    if (!is_nvlink(link)) continue;
    for (const auto& [end, far] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
      const auto here = std::ranges::find(gpus, end) - gpus.begin();
      const auto there = std::ranges::find(gpus, far) - gpus.begin();
      if (here == std::ssize(gpus)) continue;
      const auto gpu = static_cast<std::size_t>(here);
      if (machine.node(far).kind == NodeKind::nvswitch) graph.to_switches[gpu] += link.count;
      if (there < std::ssize(gpus)) {
        graph.nvlinks[gpu][static_cast<std::size_t>(there)] += link.count;
      }
    }
  }
  return graph;
}

GpuGraph graph_of(const std::vector<std::string>& models,
                  const std::vector<ProbedNvlink>& nvlinks) {
  GpuGraph graph = empty_graph(models.size());
  graph.models = models;
  for (std::size_t gpu = 0; gpu < models.size(); ++gpu) {
    graph.names.push_back(fmt::format("GPU {}", gpu));
  }
  for (const ProbedNvlink& link : nvlinks) {
    if (link.peer == ProbedNvlink::kSwitch) {
      graph.to_switches[index(link.device)] += link.count;
    } else {
      graph.nvlinks[index(link.device)][index(link.peer)] += link.count;
      graph.nvlinks[index(link.peer)][index(link.device)] += link.count;
    }
  }
  return graph;
}

bool can_be_checked(const Topology& machine, const GpuGraph& graph) {
  const auto is_changed = [](const auto& part) { return !part.what_if.empty(); };
  const bool has_what_if = machine.name.find("without=") != std::string::npos ||
                           std::ranges::any_of(machine.nodes, is_changed) ||
                           std::ranges::any_of(machine.links, is_changed);
  const bool says_models =
      std::ranges::none_of(graph.models, [](const std::string& model) { return model.empty(); });
  return !has_what_if && (says_models || std::ranges::any_of(machine.links, is_nvlink));
}

std::vector<std::string> contradictions(const GpuGraph& machine, const GpuGraph& computer,
                                        const std::vector<int>& devices) {
  std::vector<std::string> all;
  for (int gpu = 0; gpu < machine.size(); ++gpu) {
    const std::size_t device = index(devices[index(gpu)]);
    const std::string& model = machine.models[index(gpu)];
    const std::string& name = machine.names[index(gpu)];
    if (!may_be(computer.models[device], model)) {
      all.push_back(fmt::format("{} is called {}, {} is a {}", computer.names[device],
                                computer.models[device], name, model));
    }
    for (int other = 0; other < gpu; ++other) {
      const std::size_t far = index(devices[index(other)]);
      const int here = computer.nvlinks[device][far];
      const int there = machine.nvlinks[index(gpu)][index(other)];
      if (here == there) continue;
      all.push_back(fmt::format("{} and {} have {} between them, {} and {} {}", computer.names[far],
                                computer.names[device], links_text(here),
                                machine.names[index(other)], name, links_text(there)));
    }
    const int here = computer.to_switches[device];
    const int there = machine.to_switches[index(gpu)];
    if (here != there) {
      all.push_back(fmt::format("{} has {} to switches, {} {}", computer.names[device],
                                links_text(here), name, links_text(there)));
    }
  }
  return all;
}

std::optional<std::vector<int>> matching_devices(const GpuGraph& machine,
                                                 const GpuGraph& computer) {
  return Matching(machine, computer).find();
}

std::optional<std::vector<int>> matching_gpus(const GpuGraph& machine, const GpuGraph& computer,
                                              const std::vector<int>& devices) {
  std::vector<int> gpus;
  int tries = 0;
  const std::function<bool()> place = [&] {
    if (gpus.size() == devices.size()) return true;
    for (int gpu = 0; gpu < machine.size(); ++gpu) {
      if (std::ranges::find(gpus, gpu) != gpus.end()) continue;
      if (++tries > kMostParts) return false;
      gpus.push_back(gpu);
      if (contradictions(part_of(machine, gpus), computer, devices).empty() && place()) return true;
      gpus.pop_back();
    }
    return false;
  };
  return place() ? std::optional(gpus) : std::nullopt;
}

std::optional<std::vector<int>> rightly_numbered(const GpuGraph& machine, const GpuGraph& computer,
                                                 std::size_t count) {
  std::vector<int> gpus;
  const int common = std::min(machine.size(), computer.size());
  int tries = 0;
  const std::function<bool(int)> choose = [&](int first) {
    if (gpus.size() == count) return true;
    for (int gpu = first; gpu < common; ++gpu) {
      if (++tries > kMostParts) return false;
      gpus.push_back(gpu);
      if (contradictions(part_of(machine, gpus), computer, gpus).empty() && choose(gpu + 1)) {
        return true;
      }
      gpus.pop_back();
    }
    return false;
  };
  return choose(0) ? std::optional(gpus) : std::nullopt;
}

}  // namespace espalier
