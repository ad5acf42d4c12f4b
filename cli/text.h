// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace espalier {

/// `value` with up to two decimals, or fewer if it would be wider than `width`, as nccl-tests
/// prints times and bandwidths. No digit before the point is lost, even if the text is then wider.
std::string fit_number(double value, int width);

/// Breaks at spaces so that no line is longer than `width` (unless a word is), each line beginning
/// with `indent`. Ends with a line end.
std::string wrap(std::string_view text, int width, std::string_view indent);

/// `text`, or its beginning and its end when it is longer than `maximum`, cut at spaces. \pre most
/// >= 40
std::string shorten(std::string_view text, std::size_t maximum);

/// Cells in columns, two spaces apart, without trailing spaces.
class Columns {
 public:
  /// One letter per column: 'l' left, 'r' right aligned. The last left one is never padded.
  explicit Columns(std::string alignment) : alignment_(std::move(alignment)) {}

  /// \pre as many cells as columns.
  void add(std::vector<std::string> cells);
  /// Each row as a line that begins with `indent`.
  std::string render(std::string_view indent = {}) const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

/// A line of column names: '#' in place of its first column, no trailing spaces, a line end.
/// \pre the line is not empty
std::string header_line(std::string line);

/// "[=====     ]" for a share of 0 to 1, `columns` wide between the brackets.
std::string bar(double share, int columns);

}  // namespace espalier
