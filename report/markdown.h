// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// Private to the room.

namespace espalier {

/// Text in a cell of a Markdown table: on one line, and what would end the cell is escaped.
std::string markdown_cell(std::string_view text);

}  // namespace espalier
