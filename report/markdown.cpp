// SPDX-License-Identifier: Apache-2.0
#include "report/markdown.h"

#include "core/words.h"

namespace espalier {

std::string markdown_cell(std::string_view text) {
  std::string escaped;
  for (const char c : trim(text)) {
    if (c == '|' || c == '\\') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

}  // namespace espalier
