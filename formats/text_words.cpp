// SPDX-License-Identifier: Apache-2.0
#include "formats/text_words.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "core/units.h"

namespace espalier {
namespace {

constexpr double kLargestFigure = 1e15;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

/// Whether a colour or the like begins here.
bool is_escape(std::string_view text, std::size_t at) {
  return text[at] == '\x1b' && at + 1 < text.size() && text[at + 1] == '[';
}

/// Behind the one that begins here: "ESC [", figures, and one letter or the like.
std::size_t past_escape(std::string_view text, std::size_t at) {
  for (at += 2; at < text.size() && !(text[at] >= '@' && text[at] <= '~');) ++at;
  return std::min(at + 1, text.size());
}

}  // namespace

std::string without_colours(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size();) {
    if (is_escape(text, i)) {
      i = past_escape(text, i);
    } else {
      plain += text[i++];
    }
  }
  return plain;
}

std::optional<ParsedFigure> parse_figure(std::string_view word) {
  if (word.empty() || word.size() > 30 || word == "-") return std::nullopt;
  const auto value = parse_number(word);
  if (!value || std::abs(*value) > kLargestFigure) return std::nullopt;
  const std::size_t e = word.find_first_of("eE");
  const std::string_view digits = word.substr(0, e);
  const std::size_t point = digits.find('.');
  double rounding = 0.5;
  if (point != std::string_view::npos) {
    rounding *= std::pow(10.0, -static_cast<double>(digits.size() - point - 1));
  }
  if (e != std::string_view::npos) {
    const double exponent = parse_number(word.substr(e + 1)).value_or(0);
    rounding *= std::pow(10.0, exponent);
  }
  return ParsedFigure{*value, rounding};
}

std::optional<std::int64_t> parse_whole(std::string_view word, std::int64_t low,
                                        std::int64_t high) {
  std::int64_t value = 0;
  const char* const end = word.data() + word.size();
  const auto [stopped, failure] = std::from_chars(word.data(), end, value);
  if (word.empty() || failure != std::errc() || stopped != end) return std::nullopt;
  if (value < low || value > high) return std::nullopt;
  return value;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < line.size();) {
    if (is_blank(line[i])) {
      ++i;
    } else if (is_escape(line, i)) {
      i = past_escape(line, i);
    } else {
      const std::size_t begin = i;
      while (i < line.size() && !is_blank(line[i]) && line[i] != '\x1b') ++i;
      words.push_back(line.substr(begin, i - begin));
      // An escape that is no colour would otherwise never be passed.
      if (i < line.size() && line[i] == '\x1b' && !is_escape(line, i)) ++i;
    }
  }
  return words;
}

}  // namespace espalier
