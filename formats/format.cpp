// SPDX-License-Identifier: Apache-2.0
#include "formats/format.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/words.h"

namespace espalier {
namespace {

/// Whether a line of the text begins so.
bool has_line(std::string_view text, std::string_view begins) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (trim(text.substr(at, end - at)).starts_with(begins)) return true;
    at = end + 1;
  }
  return false;
}

bool may_be(OwnForm own, std::string_view text, std::string_view file) {
  if (own == OwnForm::program) return file.ends_with(".esp") || has_line(text, "program ");
  return file.ends_with(".yaml") || file.ends_with(".yml") || has_line(text, "schema:");
}

}  // namespace

const Format* recognise(std::string_view text) {
  const auto found = std::ranges::find_if(all_formats(), [&](const Format* format) {
    return format->recognises != nullptr && format->recognises(text);
  });
  return found == all_formats().end() ? nullptr : *found;
}

const Format* recognise_foreign(std::string_view text, const std::string& file, OwnForm own) {
  if (const Format* format = recognise(text)) return format;
  const std::string_view beginning = trim(text);
  const auto refuse = [&](const std::string& message, const std::string& suggestion) {
    throw Error(ErrorKind::input, {Diagnostic{"", message, suggestion, {file, 1, 0}}});
  };
  if (beginning.empty()) refuse("the file is empty", "");
  const bool is_json = beginning.front() == '{' || beginning.front() == '[';
  const bool is_xml = beginning.front() == '<';
  if (!is_json && !is_xml && may_be(own, text, file)) return nullptr;
  std::vector<std::string> names;
  if (!is_json && !is_xml) names = {"esp", "yaml"};
  for (const Format* format : all_formats()) {
    if (format->recognises != nullptr) names.push_back(format->name);
  }
  refuse(is_json  ? "this is JSON, but in none of the formats that are read"
         : is_xml ? "this is XML, but in none of the formats that are read"
                  : "this is in none of the formats that are read",
         join(names, ", "));
  return nullptr;
}

}  // namespace espalier
