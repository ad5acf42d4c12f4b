// SPDX-License-Identifier: Apache-2.0
#include "report/json.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <utility>

namespace espalier {

Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.10g}", value).c_str(), nullptr);
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string dump_results(std::string_view schema, Json results, const Json& of_all) {
  Json json = {{"schema", schema}};
  if (!of_all.is_null()) json.update(of_all);
  json["results"] = std::move(results);
  return dump(json);
}

}  // namespace espalier
