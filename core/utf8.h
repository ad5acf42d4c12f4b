// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace espalier {

/// The first byte that begins no character of UTF-8, or npos.
std::size_t first_not_utf8(std::string_view text);

}  // namespace espalier
