// SPDX-License-Identifier: Apache-2.0
#include "formats/measured_machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/words.h"
#include "formats/known_gpus.h"
#include "topologies/gpu_models.h"

namespace espalier {
namespace {

std::string first_word(const std::string& model) { return model.substr(0, model.find('-')); }

/// A name that nobody knows may be another one of the same GPU.
bool is_known(const std::string& model) {
  Node gpu;
  gpu.model = first_word(model);
  fill_from_catalogue(gpu);
  return gpu.memory_gbps > 0;
}

bool can_be(const std::string& listed, const std::string& model) {
  if (!is_known(listed) || !is_known(model)) return true;
  if (first_word(listed) != first_word(model)) return false;
  // A card has no NVLinks to a switch.
  return !(listed.ends_with("-pcie") && model.find("-sxm") != std::string::npos);
}

}  // namespace

std::string different_gpus(const MeasuredTable& table, const Topology& machine) {
  std::vector<std::string> models;
  for (const NodeId gpu : machine.gpus()) {
    const std::string& model = machine.node(gpu).model;
    if (model.empty()) return {};
    if (std::ranges::count(models, model) == 0) models.push_back(model);
  }
  for (const MeasuredRank& rank : table.listed) {
    const std::string listed = model_of_device(rank.model);
    if (listed.empty() || std::ranges::any_of(models, [&](const std::string& model) {
          return can_be(listed, model);
        })) {
      continue;
    }
    return fmt::format("rank {} ran on {}, and the GPUs of {} are {}", rank.rank, quote(rank.model),
                       machine.name, join(models, ", "));
  }
  return {};
}

}  // namespace espalier
