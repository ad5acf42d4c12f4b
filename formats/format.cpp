// SPDX-License-Identifier: Apache-2.0
#include "formats/format.h"

#include <algorithm>

namespace espalier {

const Format* recognise(std::string_view text) {
  const auto found = std::ranges::find_if(all_formats(), [&](const Format* format) {
    return format->recognises != nullptr && format->recognises(text);
  });
  return found == all_formats().end() ? nullptr : *found;
}

}  // namespace espalier
