// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scenarios/expectation.h"
#include "scenarios/study.h"
#include "scenarios/training_sweep.h"

namespace espalier {

/// What a block also runs with real data, after its tables.
struct ScenarioExecution {
  std::string backend = "host";
  Location where;  ///< of the back end's name
  std::int64_t size_bytes = 0;
  std::string algorithm;  ///< empty: the fastest of each table
};

/// Times that somebody measured, with which the simulated ones of a block are compared.
struct MeasuredSeries {
  std::string source;
  std::string fitted;                     ///< what was fitted on these times; empty: nothing
  std::map<std::int64_t, double> time_s;  ///< by size in bytes
};

/// How fast are collectives?
struct CollectiveStudy {
  /// One table per machine, set of GPUs and profile, in file order; each holds every size
  /// (ascending as given) with every algorithm. `algorithms: all` is already replaced. Never empty.
  std::vector<std::vector<Query>> tables;
  std::optional<ScenarioExecution> execute;
  std::optional<MeasuredSeries> measured;  ///< of the sizes that are asked
};

/// How long does an iteration of training take?
struct TrainingStudy {
  /// One per machine, set of GPUs, profile, model and kind of overlap, in file order. Never empty.
  std::vector<TrainingSweep> tables;
};

/// One block of a scenario: what is compared with what.
struct ScenarioBlock {
  std::string title;
  std::string note;
  std::variant<CollectiveStudy, TrainingStudy> study;
  std::vector<ExpectedResult> expectations;
};

/// A study as a file: what to ask, in `espalier.scenario/1`. docs/scenarios.md.
struct Scenario {
  std::string name;
  std::string title;
  std::string note;
  std::vector<ScenarioBlock> blocks;
};

/// Reads a scenario and checks that every question makes sense: the machines load, the GPUs, the
/// root and the profile exist there, the algorithms serve the collective, the models know their
/// step times. Relative paths count from the folder of `file`. Throws Error{input} with every
/// problem.
Scenario parse_scenario(std::string_view yaml, const std::string& file);

/// The schema of a file that scenarios may name and that may be in their
/// folder, such as a machine; empty for anything else, including scenarios.
std::string other_schema(std::string_view yaml);

struct ScenarioEntry {
  std::string name;
  std::string title;
  std::string yaml;  ///< the file's whole text
};

/// The built-in scenarios, by name. They are compiled into the library.
const std::vector<ScenarioEntry>& builtin_scenarios();

}  // namespace espalier
