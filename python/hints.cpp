// SPDX-License-Identifier: Apache-2.0
#include "python/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>

#include "ir/collective.h"

namespace espalier {

namespace {

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789.") == std::string_view::npos;
}
bool are_numbers(std::string_view word) {
  return word == "all" || word.find_first_not_of("0123456789,-") == std::string_view::npos;
}
bool is_collective(std::string_view word) { return parse_collective(word).has_value(); }
bool is_any(std::string_view) { return true; }
bool has_file(std::string_view word) { return word.find_first_of(":./") != std::string_view::npos; }
bool is_none(std::string_view) { return false; }

/// An option of the command line, and what is one in Python.
struct Keyword {
  std::string_view option;
  std::string_view name;
  /// Whether the word behind the option is its value: sentences also speak of options alone.
  bool (*is_value)(std::string_view word);
  std::string_view written;  ///< with its value
};

constexpr std::array kKeywords{
    Keyword{"algorithm", "algorithm", has_file, "algorithm=\"{}\""},
    Keyword{"collective", "collective", is_collective, "collective=\"{}\""},
    Keyword{"devices", "devices", are_numbers, "devices=[{}]"},
    Keyword{"gpus", "gpus", are_numbers, "gpus=\"{}\""},
    Keyword{"in-place", "in_place=True", is_none, ""},
    Keyword{"instances", "instances", is_number, "instances={}"},
    Keyword{"jobs", "jobs", is_number, "jobs={}"},
    Keyword{"launch", "launch", is_none, ""},
    Keyword{"links", "links", is_any, "links=\"{}\""},
    Keyword{"nccl-version", "nccl_version", is_none, ""},
    Keyword{"profile", "profile", is_any, "profile=\"{}\""},
    Keyword{"ranks", "ranks", is_number, "ranks={}"},
    Keyword{"relay", "relays", are_numbers, "relays=\"{}\""},
    Keyword{"root", "root", is_number, "root={}"},
    Keyword{"size", "size", is_none, ""},
    Keyword{"timeout", "timeout", is_number, "timeout={}"},
    Keyword{"topology", "machine", is_none, ""},
};

}  // namespace

std::string hint_in_python(const std::string& suggestion) {
  if (suggestion.find("espalier ") != std::string::npos) return suggestion;
  static const std::regex options("--([a-z-]+)( ([\\w./:=-]+(?:,[\\w./:=-]+)*))?");
  std::string text;
  auto rest = suggestion.begin();
  for (std::sregex_iterator at(suggestion.begin(), suggestion.end(), options), end; at != end;
       ++at) {
    const std::smatch& found = *at;
    const auto keyword = std::ranges::find(kKeywords, found[1].str(), &Keyword::option);
    if (keyword == kKeywords.end()) continue;
    text.append(rest, found[0].first);
    const std::string value = found[3].str();
    const bool has_value = found[3].matched && keyword->is_value(value);
    text +=
        has_value ? fmt::format(fmt::runtime(keyword->written), value) : std::string(keyword->name);
    rest = has_value ? found[0].second : found[1].second;
  }
  return text.append(rest, suggestion.end());
}

}  // namespace espalier
