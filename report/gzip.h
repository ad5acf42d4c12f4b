// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace espalier {

/// As a file of gzip, which viewers of traces open as it is. The same for the same text.
std::string gzip(std::string_view text);

}  // namespace espalier
