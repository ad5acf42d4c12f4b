// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace espalier {

/// What the library suggests to who calls from Python: options of the command line as keyword
/// arguments, "--gpus 0,1" as "gpus=\"0,1\"". A whole command stays one.
std::string hint_in_python(const std::string& suggestion);

}  // namespace espalier
