// SPDX-License-Identifier: Apache-2.0
#include "topologies/name_pattern.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/units.h"
#include "core/words.h"

namespace espalier {

namespace {

/// Long enough for any name, and short enough that a million of them fit memory.
constexpr std::size_t kMaxNameBytes = 64;

bool is_name_part(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

}  // namespace

std::optional<std::vector<std::string>> expand_names(std::string_view pattern, std::size_t limit,
                                                     std::string& problem) {
  const auto refuse = [&](std::string why) {
    problem = quote(pattern) + " " + std::move(why);
    return std::nullopt;
  };
  if (pattern.empty() || pattern.size() > kMaxNameBytes) {
    return refuse(fmt::format("is not a name of 1 to {} characters", kMaxNameBytes));
  }
  std::vector<std::string> names = {""};
  std::string_view rest = pattern;
  while (!rest.empty()) {
    const std::size_t open = std::min(rest.find('['), rest.size());
    if (!is_name_part(rest.substr(0, open))) {
      return refuse("is not a name: letters, digits, '_', '-' and [ranges]");
    }
    for (std::string& name : names) name += rest.substr(0, open);
    rest.remove_prefix(open);
    if (rest.empty()) break;
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos) return refuse("opens a bracket without closing it");
    const auto numbers = parse_int_list(rest.substr(1, close - 1));
    if (!numbers)
      return refuse("needs numbers or ascending ranges between its brackets, as in gpu[0-3,5]");
    if (numbers->size() > limit / names.size()) {
      return refuse(fmt::format("stands for more than {} names", limit));
    }
    std::vector<std::string> longer;
    longer.reserve(names.size() * numbers->size());
    for (const std::string& name : names) {
      for (const int number : *numbers) longer.push_back(name + std::to_string(number));
    }
    names = std::move(longer);
    rest.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace espalier
