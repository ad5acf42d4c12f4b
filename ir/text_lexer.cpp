// SPDX-License-Identifier: Apache-2.0
#include "ir/text_lexer.h"

#include <algorithm>
#include <system_error>

#include "core/words.h"

namespace espalier {

bool LineLexer::take_real(double& number) {
  skip_blanks();
  const char* end = line_.data() + line_.size();
  const auto [rest, status] = std::from_chars(line_.data() + at_, end, number);
  if (status == std::errc::invalid_argument) return false;
  if (status != std::errc{}) number = std::numeric_limits<double>::infinity();
  at_ = static_cast<std::size_t>(rest - line_.data());
  return true;
}

bool LineLexer::take_name(std::string& name) {
  skip_blanks();
  name.clear();
  if (at_ < line_.size() && line_[at_] == '"') return take_quoted(name);
  while (at_ < line_.size() && is_plain_name_byte(line_[at_])) name += line_[at_++];
  return !name.empty();
}

bool LineLexer::take_quoted(std::string& name) {
  for (std::size_t i = at_ + 1; i < line_.size(); ++i) {
    if (line_[i] == '"') {
      at_ = i + 1;
      return true;
    }
    if (line_[i] != '\\') {
      name += line_[i];
      continue;
    }
    const std::string_view escape = line_.substr(i + 1, 3);
    if (escape.starts_with('"') || escape.starts_with('\\')) {
      name += escape[0];
      i += 1;
      continue;
    }
    std::uint8_t byte = 0;
    if (escape.size() < 3 || escape[0] != 'x') return false;
    const char* end = escape.data() + escape.size();
    if (std::from_chars(escape.data() + 1, end, byte, 16).ptr != end) return false;
    name += static_cast<char>(byte);
    i += 3;
  }
  return false;
}

std::string LineLexer::describe_next() {
  if (at_end()) return "the end of the line";
  const std::string_view rest = line_.substr(at_);
  const auto end =
      std::find_if(rest.begin(), rest.end(), [](char c) { return c == ' ' || c == '\t'; });
  return quote(rest.substr(0, static_cast<std::size_t>(end - rest.begin())));
}

}  // namespace espalier
