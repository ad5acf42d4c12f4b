// SPDX-License-Identifier: Apache-2.0
#include "report/json.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace espalier {

Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.10g}", value).c_str(), nullptr);
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string dump_one_or_array(const Json& array) {
  return dump(array.size() == 1 ? array.front() : array);
}

}  // namespace espalier
