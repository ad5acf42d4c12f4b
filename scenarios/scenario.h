// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/study.h"

namespace espalier {

/// One block of a scenario: every combination of its lists is a query.
struct ScenarioBlock {
  std::string title;
  std::vector<Query> queries;      ///< expanded; `algorithm: all` already replaced
  bool execute_best = false;       ///< also run the fastest one with real data on the host
  std::int64_t execute_bytes = 0;  ///< with a message of this size
};

/// A study as a file: what to ask, in `espalier.scenario/1`. docs/scenarios.md.
struct Scenario {
  std::string name;
  std::string title;
  std::string note;
  std::vector<ScenarioBlock> blocks;
};

/// Throws Error{input} with every problem.
Scenario parse_scenario(std::string_view yaml, const std::string& file);

}  // namespace espalier
