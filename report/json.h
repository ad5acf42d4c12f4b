// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

// Private to this room and to those who print single facts.

namespace espalier {

/// Keys in the order they were added.
using Json = nlohmann::ordered_json;

/// Rounds to ten digits, so that the last bits of a sum never show; null for what is not a number.
Json rounded(double value);

/// Indented, with a line end. Bytes that are not UTF-8 (of a file's name, say) become U+FFFD.
std::string dump(const Json& json);

/// One object by itself, several as an array.
std::string dump_one_or_array(const Json& array);

}  // namespace espalier
