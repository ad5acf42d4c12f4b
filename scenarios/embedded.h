// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/embedded_file.h"

namespace espalier {

/// The YAML files of scenarios/, sorted by name.
const std::vector<EmbeddedFile>& embedded_scenarios();

}  // namespace espalier
