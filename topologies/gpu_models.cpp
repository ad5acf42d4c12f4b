// SPDX-License-Identifier: Apache-2.0
#include "topologies/gpu_models.h"

#include <algorithm>
#include <set>

#include "core/words.h"
#include "topologies/load.h"

namespace espalier {
namespace {

/// "v100", "gk210": how the models of the catalogue begin.
std::set<std::string> known_beginnings() {
  std::set<std::string> models;
  for (const Node& gpu : catalogue_gpus()) {
    models.insert(gpu.model.substr(0, gpu.model.find('-')));
  }
  return models;
}

}  // namespace

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

std::string model_of_device(std::string_view name) {
  static const std::set<std::string> known = known_beginnings();
  std::string text = lower_case(name.substr(0, 100));
  std::ranges::replace(text, ' ', '-');
  std::vector<std::string> words = split(text, '-');
  std::erase_if(words, [](const std::string& word) {
    return word.empty() || word == "nvidia" || word == "tesla" || word == "geforce" ||
           word == "amd" || word == "instinct" || word == "quadro";
  });
  // A part of a GPU is no such GPU.
  if (std::ranges::count(words, "mig") > 0) return printable(join(words, "-"));
  for (const std::string& word : words) {
    if (word == "k80") return "gk210";
    if (!known.contains(word)) continue;
    return std::ranges::count(words, "pcie") > 0 ? word + "-pcie" : word;
  }
  return printable(join(words, "-"));
}

}  // namespace espalier
