// SPDX-License-Identifier: Apache-2.0
#include "scenarios/reading.h"

#include <fmt/format.h>

#include "core/units.h"

namespace espalier {

std::optional<std::vector<int>> read_gpu_set(const YamlValue& value) {
  std::string text;
  if (value.kind() == YamlValue::Kind::list) {
    std::vector<std::string> numbers;
    for (const YamlValue& item : value.items("gpus")) {
      const auto number = item.text("gpu");
      if (!number) return std::nullopt;
      numbers.push_back(*number);
    }
    text = join(numbers, ",");
  } else if (const auto words = value.text("gpus")) {
    text = *words;
  } else {
    return std::nullopt;
  }
  if (text == "all") return std::vector<int>{};
  auto gpus = parse_int_list(text);
  if (!gpus) {
    value.problem(fmt::format("{} is not a set of GPUs", quote(text)),
                  "all, or numbers and ranges such as 0-3,6");
  }
  return gpus;
}

std::string machine_path(const std::string& spec, const std::filesystem::path& folder) {
  const std::string name = spec.substr(0, spec.find(':'));
  const bool is_path = name.find('/') != std::string::npos || name.ends_with(".yaml");
  if (!is_path || folder.empty() || std::filesystem::path(name).is_absolute()) return spec;
  return (folder / spec).lexically_normal().string();
}

}  // namespace espalier
