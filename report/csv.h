// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/json.h"

// Private to this room and to those who print single facts.

namespace espalier {

/// A value as the text of a cell, see CsvText.
std::string csv_text(const Json& value);

/// Comma-separated values (RFC 4180), written row by row: a header line, then a line for each
/// object. What an object lacks or has as null is an empty cell; lists of numbers are written as
/// ranges ("0-3,6"), those of texts with semicolons.
class CsvText {
 public:
  explicit CsvText(std::vector<std::string_view> columns);

  void add(const Json& row);
  std::string finish() { return std::move(text_); }

 private:
  std::vector<std::string_view> columns_;
  std::string text_;
};

}  // namespace espalier
