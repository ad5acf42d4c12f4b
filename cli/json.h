// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace espalier {

/// Keys in the order they were added.
using Json = nlohmann::ordered_json;

/// Indented, with a line end. Bytes that are not UTF-8 (of a file's name, say) become U+FFFD.
inline std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// One object by itself, several as an array.
inline std::string dump_one_or_array(const Json& array) {
  return dump(array.size() == 1 ? array.front() : array);
}

}  // namespace espalier
