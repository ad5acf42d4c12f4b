// SPDX-License-Identifier: Apache-2.0
#include "formats/known_gpus.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "core/words.h"
#include "formats/machine.h"
#include "formats/machine_parts.h"
#include "topologies/load.h"

namespace espalier {
namespace {

constexpr std::array kGenerations = {
    NvlinkGeneration{6, "v100", "nvlink2", 25},  NvlinkGeneration{12, "a100", "nvlink3", 25},
    NvlinkGeneration{18, "h100", "nvlink4", 25}, NvlinkGeneration{18, "h200", "nvlink4", 25},
    NvlinkGeneration{18, "b200", "nvlink5", 50}, NvlinkGeneration{4, "p100", "nvlink1", 20}};

/// A GPU of each model, in the order of the catalogue.
const std::vector<Node>& catalogue_gpus() {
  static const std::vector<Node> gpus = [] {
    std::vector<Node> known;
    for (const CatalogueEntry& entry : catalogue()) {
      for (const Node& node : load_topology(entry.name).nodes) {
        if (node.kind != NodeKind::gpu || node.model.empty()) continue;
        if (std::ranges::count(known, node.model, &Node::model) == 0) known.push_back(node);
      }
    }
    return known;
  }();
  return gpus;
}

/// "v100", "gk210": how the models of the catalogue begin.
std::set<std::string> known_beginnings() {
  std::set<std::string> models;
  for (const Node& gpu : catalogue_gpus()) {
    models.insert(gpu.model.substr(0, gpu.model.find('-')));
  }
  return models;
}

}  // namespace

int multiprocessors_of(std::string_view model) {
  struct Known {
    std::string_view beginning;
    int count;
  };
  // NVIDIA's white papers of the architectures and data sheets, AMD's of CDNA 2 and 3.
  static constexpr std::array kKnown = {
      Known{"gk210", 13},      Known{"p100", 56},   Known{"v100", 80},  Known{"a100", 108},
      Known{"h100-pcie", 114}, Known{"h100", 132},  Known{"h200", 132}, Known{"b200", 148},
      Known{"mi250", 104},     Known{"mi300x", 304}};
  const auto known = std::ranges::find_if(
      kKnown, [&](const Known& one) { return model.starts_with(one.beginning); });
  return known == kKnown.end() ? 0 : known->count;
}

void fill_from_catalogue(Node& gpu) {
  if (gpu.model.empty()) return;
  const std::vector<Node>& known = catalogue_gpus();
  const auto same = std::ranges::find_if(
      known, [&](const Node& node) { return node.model.starts_with(gpu.model); });
  if (same == known.end()) return;
  gpu.model = same->model;
  fill_gpu(gpu, *same);
}

std::string model_of_device(std::string_view name) {
  static const std::set<std::string> known = known_beginnings();
  std::string text = lower_case(name.substr(0, 100));
  std::ranges::replace(text, ' ', '-');
  std::vector<std::string> words = split(text, '-');
  std::erase_if(words, [](const std::string& word) {
    return word.empty() || word == "nvidia" || word == "tesla" || word == "geforce" ||
           word == "amd" || word == "instinct" || word == "quadro";
  });
  for (const std::string& word : words) {
    if (word == "k80") return "gk210";
    if (!known.contains(word)) continue;
    return std::ranges::count(words, "pcie") > 0 ? word + "-pcie" : word;
  }
  return printable(join(words, "-"));
}

const NvlinkGeneration& nvlinks_by_number(int links) {
  constexpr std::size_t kGuessed = 3;
  const auto end = kGenerations.begin() + kGuessed;
  const auto found = std::find_if(kGenerations.begin(), end,
                                  [&](const NvlinkGeneration& one) { return links <= one.links; });
  return found == end ? kGenerations[kGuessed - 1] : *found;
}

const NvlinkGeneration* nvlinks_of_model(std::string_view model) {
  if (model.ends_with("-pcie")) return nullptr;
  const auto found = std::ranges::find_if(
      kGenerations, [&](const NvlinkGeneration& one) { return model.starts_with(one.model); });
  return found == kGenerations.end() ? nullptr : &*found;
}

}  // namespace espalier
