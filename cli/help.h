// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/verb.h"

namespace espalier {

/// What `espalier help` prints: the verbs.
std::string overview(int width);

/// What `espalier help VERB` prints.
std::string help_of(const Verb& verb, int width);

/// docs/cli.md, from the same records.
std::string help_markdown();

}  // namespace espalier
