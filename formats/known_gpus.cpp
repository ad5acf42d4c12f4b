// SPDX-License-Identifier: Apache-2.0
#include "formats/known_gpus.h"

#include <algorithm>
#include <array>
#include <vector>

#include "formats/machine.h"
#include "formats/machine_parts.h"
#include "topologies/gpu_models.h"

namespace espalier {
namespace {

constexpr std::array kGenerations = {
    NvlinkGeneration{6, "v100", "nvlink2", 25},  NvlinkGeneration{12, "a100", "nvlink3", 25},
    NvlinkGeneration{18, "h100", "nvlink4", 25}, NvlinkGeneration{18, "h200", "nvlink4", 25},
    NvlinkGeneration{18, "b200", "nvlink5", 50}, NvlinkGeneration{4, "p100", "nvlink1", 20}};

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
