// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace espalier {

/// A file of topologies/ as it was when the library was built (embed.cmake writes the source).
struct EmbeddedFile {
  std::string_view name;  ///< "dgx1-v100.yaml"
  std::string_view text;
};

/// Sorted by name; profiles.yaml is one of them.
const std::vector<EmbeddedFile>& embedded_files();

}  // namespace espalier
