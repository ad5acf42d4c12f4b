// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/embedded_file.h"

namespace espalier {

/// The YAML files of training/, sorted by name.
const std::vector<EmbeddedFile>& embedded_models();

}  // namespace espalier
