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

/// Each once; none where one of them is not known.
std::vector<std::string> models_of(const Topology& machine) {
  std::vector<std::string> models;
  for (const NodeId gpu : machine.gpus()) {
    const std::string& model = machine.node(gpu).model;
    if (model.empty()) return {};
    if (std::ranges::count(models, model) == 0) models.push_back(model);
  }
  return models;
}

/// Whether a name that nobody knows is one of such a GPU nevertheless: "mi250x/mi250".
bool names(const std::string& listed, const std::string& model) {
  return listed.starts_with(first_word(model));
}

}  // namespace

std::string different_gpus(const MeasuredTable& table, const Topology& machine) {
  const std::vector<std::string> models = models_of(machine);
  if (models.empty()) return {};
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

std::string unknown_gpus(const MeasuredTable& table, const Topology& machine) {
  const std::vector<std::string> models = models_of(machine);
  for (const MeasuredRank& rank : table.listed) {
    const std::string listed = model_of_device(rank.model);
    const auto is_named = [&](const std::string& model) { return names(listed, model); };
    if (listed.empty() || models.empty() || is_known(listed)) continue;
    if (std::ranges::any_of(models, is_named)) continue;
    return fmt::format("rank {} ran on {}, of which nothing is known: taken for {}, the GPUs of {}",
                       rank.rank, quote(rank.model), join(models, ", "), machine.name);
  }
  return {};
}

}  // namespace espalier
