// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

// Private to this room and to those who print single facts.

namespace espalier {

/// Keys in the order they were added.
using Json = nlohmann::ordered_json;

/// Rounds to ten digits, so that the last bits of a sum never show; null for what is not a number.
Json rounded(double value);

/// Indented, with a line end. Bytes that are not UTF-8 (of a file's name, say) become U+FFFD.
std::string dump(const Json& json);

/// What `--json` writes: an object with its schema, what there is to say of all results (an
/// object), and the array `results`.
std::string dump_results(std::string_view schema, Json results, const Json& of_all = {});

}  // namespace espalier
