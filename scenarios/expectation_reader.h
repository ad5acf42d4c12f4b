// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/yaml.h"
#include "scenarios/expectation.h"
#include "scenarios/training_sweep.h"

// Private to the room.

namespace espalier {

/// How the expectations of a block name its figures.
struct FigureWords {
  /// Exactly one figure among the block's answers; nothing, and a problem, otherwise.
  using Read = std::function<std::optional<Figure>(const YamlValue& value, Measure measure)>;

  std::vector<Measure> measures;
  Measure usual_measure = Measure::algbw_gbps;
  Read read;
};

/// What a query's `topology` loads; null when it does not.
using FindMachine = std::function<const Topology*(const std::string& topology)>;

/// Figures of a block's tables, which are borrowed. Paths count from `folder`.
FigureWords collective_figures(const std::vector<std::vector<Query>>& tables,
                               const std::filesystem::path& folder, FindMachine find_machine);
FigureWords training_figures(const std::vector<TrainingSweep>& tables,
                             const std::filesystem::path& folder);

/// Reads `expect` of a block, one or a list; wrong ones are left out, with problems.
std::vector<ExpectedResult> read_expectations(const YamlValue& value, const FigureWords& words);

}  // namespace espalier
