// SPDX-License-Identifier: Apache-2.0
#include "cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/words.h"

namespace espalier {

std::string fit_number(double value, int width) {
  constexpr double kMaxWritten = 1e15;  // a double has all digits before its point up to there
  for (int decimals = 2; decimals >= 0; --decimals) {
    std::string text = fmt::format("{:.{}f}", value, decimals);
    if (text.size() <= static_cast<std::size_t>(width)) return text;
  }
  return value < kMaxWritten ? fmt::format("{:.0f}", value) : fmt::format("{:.6e}", value);
}

std::string wrap(std::string_view text, int width, std::string_view indent) {
  std::string lines;
  std::string line;
  const auto end_line = [&] {
    lines += indent;
    lines += line;
    lines += '\n';
    line.clear();
  };
  for (const std::string& paragraph : split(text, '\n')) {
    for (const std::string& word : split(paragraph, ' ')) {
      const bool fits =
          indent.size() + line.size() + 1 + word.size() <= static_cast<std::size_t>(width);
      if (!line.empty() && !fits) end_line();
      if (!line.empty()) line += ' ';
      line += word;
    }
    end_line();
  }
  return lines;
}

std::string shorten(std::string_view text, std::size_t maximum) {
  CHECK(maximum >= 40);
  if (text.size() <= maximum) return std::string(text);
  const std::size_t half = maximum / 2;
  const std::size_t head = std::min(text.rfind(' ', half), half);
  const std::size_t tail = std::max(text.find(' ', text.size() - half) + 1, text.size() - half);
  return fmt::format("{} [{} characters left out] {}", text.substr(0, head), tail - head,
                     text.substr(std::min(tail, text.size())));
}

void Columns::add(std::vector<std::string> cells) {
  CHECK(cells.size() == alignment_.size());
  rows_.push_back(std::move(cells));
}

std::string Columns::render(std::string_view indent) const {
  std::vector<std::size_t> widths(alignment_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += alignment_[i] == 'r' ? fmt::format("{:>{}}", row[i], widths[i])
                                   : fmt::format("{:<{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string header_line(std::string line) {
  line[0] = '#';
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string bar(double share, int columns) {
  const auto filled = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * columns));
  return fmt::format("[{:=<{}}{:{}}]", "", filled, "", columns - filled);
}

}  // namespace espalier
