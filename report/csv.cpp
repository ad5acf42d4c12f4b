// SPDX-License-Identifier: Apache-2.0
#include "report/csv.h"

#include <utility>

#include "core/words.h"

namespace espalier {

std::string csv_text(const Json& value) {
  if (value.is_null() || value.is_discarded()) return {};
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  const bool is_texts = !value.empty() && value.front().is_string();
  return is_texts ? join(value.get<std::vector<std::string>>(), "; ")
                  : format_ranges(value.get<std::vector<int>>());
}

namespace {

std::string cell(const Json& value) {
  const std::string text = csv_text(value);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace

CsvText::CsvText(std::vector<std::string_view> columns) : columns_(std::move(columns)) {
  text_ = join({columns_.begin(), columns_.end()}, ",") + "\r\n";
}

void CsvText::add(const Json& row) {
  std::vector<std::string> cells;
  for (const std::string_view column : columns_) {
    const auto value = row.find(std::string(column));
    cells.push_back(value == row.end() ? "" : cell(*value));
  }
  text_ += join(cells, ",") + "\r\n";
}

}  // namespace espalier
