// SPDX-License-Identifier: Apache-2.0
#include "scenarios/embedded.h"
#include "scenarios/scenario.h"

namespace espalier {

const std::vector<ScenarioEntry>& builtin_scenarios() {
  static const std::vector<ScenarioEntry> all = [] {
    std::vector<ScenarioEntry> entries;
    for (const EmbeddedFile& file : embedded_scenarios()) {
      const Scenario scenario = parse_scenario(file.text, std::string(file.name));
      entries.push_back({scenario.name, scenario.title, std::string(file.text)});
    }
    return entries;
  }();
  return all;
}

}  // namespace espalier
