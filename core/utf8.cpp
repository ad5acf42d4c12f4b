// SPDX-License-Identifier: Apache-2.0
#include "core/utf8.h"

namespace espalier {

std::size_t first_not_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int more = lead < 0x80       ? 0
                     : lead >> 5 == 6  ? 1
                     : lead >> 4 == 14 ? 2
                     : lead >> 3 == 30 ? 3
                                       : -1;
    if (more < 0 || i + static_cast<std::size_t>(more) >= text.size()) return i;
    for (int k = 1; k <= more; ++k) {
      if ((static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]) >> 6) != 2) return i;
    }
    i += static_cast<std::size_t>(more) + 1;
  }
  return std::string_view::npos;
}

}  // namespace espalier
