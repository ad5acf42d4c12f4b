// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// Words and figures of what other programs print for people. Private to the room.

/// A number as it was printed, and half of its last digit.
struct ParsedFigure {
  double value = 0;
  double rounding = 0;
};
/// Nothing for what is no decimal number, or beyond +-1e15.
std::optional<ParsedFigure> parse_figure(std::string_view word);
/// A whole number within [low, high], written as one.
std::optional<std::int64_t> parse_whole(std::string_view word, std::int64_t low, std::int64_t high);

/// Without colours and the like.
std::string without_colours(std::string_view text);
/// The words of a line, without colours.
std::vector<std::string_view> words_of(std::string_view line);

}  // namespace espalier
