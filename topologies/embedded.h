// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/embedded_file.h"

namespace espalier {

/// The YAML files of topologies/, sorted by name; profiles.yaml is one of them.
const std::vector<EmbeddedFile>& embedded_files();

}  // namespace espalier
