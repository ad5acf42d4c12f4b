// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/yaml.h"
#include "scenarios/expectation.h"

// Private to the room.

namespace espalier {

/// Reads `expect` of a block: every figure it names must be exactly one among the block's tables.
class ExpectationReader {
 public:
  /// What a query's `topology` loads; null when it does not.
  using Machines = std::function<const Topology*(const std::string&)>;

  /// The first two are borrowed. Paths of machines count from `folder`.
  ExpectationReader(const std::vector<std::vector<Query>>& tables,
                    const std::filesystem::path& folder, Machines machines)
      : tables_(tables), folder_(folder), machines_(std::move(machines)) {}

  /// One or a list; wrong ones are left out, with problems.
  std::vector<ExpectedResult> read(const YamlValue& value) const;

 private:
  std::optional<ExpectedResult> read_one(const YamlValue& value) const;
  std::optional<Figure> read_figure(const YamlValue& value, Measure measure) const;
  std::optional<YamlValue> read_link(YamlMap& map, Measure measure) const;
  bool check_link(const YamlValue& value, const std::string& name, const Query& query) const;
  void read_range(YamlMap& map, ExpectedResult& expectation) const;

  const std::vector<std::vector<Query>>& tables_;
  const std::filesystem::path& folder_;
  Machines machines_;
};

}  // namespace espalier
