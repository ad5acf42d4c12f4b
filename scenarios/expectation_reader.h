// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/yaml.h"
#include "scenarios/expectation.h"

// Private to the room.

namespace espalier {

/// Reads `expect` of a block: every figure it names must be exactly one among the block's tables.
class ExpectationReader {
 public:
  /// Both are borrowed. Paths of machines count from `folder`.
  ExpectationReader(const std::vector<std::vector<Query>>& tables,
                    const std::filesystem::path& folder)
      : tables_(tables), folder_(folder) {}

  /// One or a list; wrong ones are left out, with problems.
  std::vector<ExpectedResult> read(const YamlValue& value) const;

 private:
  std::optional<ExpectedResult> read_one(const YamlValue& value) const;
  std::optional<Figure> read_figure(const YamlValue& value, Measure measure) const;
  std::optional<std::string> read_link(YamlMap& map, Measure measure) const;
  void read_range(YamlMap& map, ExpectedResult& expectation) const;

  const std::vector<std::vector<Query>>& tables_;
  const std::filesystem::path& folder_;
};

}  // namespace espalier
