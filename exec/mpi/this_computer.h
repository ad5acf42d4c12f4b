// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace espalier {

/// Equal for processes on one computer, in whichever containers, and for no others: since when it
/// runs (Linux's boot_id), or its name where the system does not say. Names alone are not unique.
std::string id_of_computer();

}  // namespace espalier
