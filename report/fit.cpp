// SPDX-License-Identifier: Apache-2.0
#include "report/fit.h"

#include <utility>
#include <vector>

#include "report/csv.h"
#include "report/objects.h"
#include "scenarios/fitted_file.h"

namespace espalier {

namespace {

Json constant_json(const FittedConstant& one, const std::vector<FittedConstant>& all) {
  const bool has_interval = one.fitted.determined == Determined::yes;
  const std::string kept = why_kept(one, all);
  return {{"name", one.constant.name()},
          {"unit", one.constant.unit},
          {"before", rounded(one.before)},
          {"fitted", one.is_changed() ? rounded(one.fitted.value) : Json()},
          {"low", has_interval ? rounded(one.fitted.low) : Json()},
          {"high", has_interval ? rounded(one.fitted.high) : Json()},
          {"at_limit", one.fitted.determined == Determined::at_limit},
          {"kept_because", kept.empty() ? Json() : Json(kept)}};
}

Json time_json(const FittedTime& one) {
  const Query& query = one.measured.query;
  return {{"file", one.measured.file},
          {"line", one.measured.line},
          {"collective", to_string(query.collective)},
          {"in_place", query.in_place},
          {"algorithm", one.algorithm},
          {"protocol", one.protocol},
          {"launch", to_string(query.launch)},
          {"size_bytes", query.size_bytes},
          {"measured_s", rounded(one.measured.time_s)},
          {"before_s", rounded(one.before_s)},
          {"error_before", rounded(one.error_before())},
          {"fitted_s", rounded(one.after_s)},
          {"error_fitted", rounded(one.error_after())}};
}

}  // namespace

std::string fit_json(const ProfileFit& fit, const FitRequest& request) {
  Json constants = Json::array();
  for (const FittedConstant& one : fit.constants) {
    constants.push_back(constant_json(one, fit.constants));
  }
  Json results = Json::array();
  for (const FittedTime& one : fit.times) results.push_back(time_json(one));
  Json of_all = {{"machine", request.machine.name},
                 {"profile", request.profile},
                 {"simulations", fit.simulations},
                 {"scatter", rounded(fit.scatter)},
                 {"constants", std::move(constants)}};
  if (fit.budget) of_all["budget"] = budget_json(*fit.budget);
  return dump_results("espalier.fit/1", std::move(results), std::move(of_all));
}

std::string fit_csv(const ProfileFit& fit) {
  CsvText text({"file", "line", "collective", "in_place", "algorithm", "protocol", "launch",
                "size_bytes", "measured_s", "before_s", "error_before", "fitted_s",
                "error_fitted"});
  for (const FittedTime& one : fit.times) text.add(time_json(one));
  return text.finish();
}

}  // namespace espalier
