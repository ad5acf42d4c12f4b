// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace espalier {

/// A file as it was when the library was built (core/embed.cmake).
struct EmbeddedFile {
  std::string_view name;  ///< "dgx1-v100.yaml"
  std::string_view text;
};

}  // namespace espalier
