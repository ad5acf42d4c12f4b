// SPDX-License-Identifier: Apache-2.0
#include "scenarios/expectation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/check.h"

namespace espalier {

namespace {

constexpr std::array<std::pair<Measure, std::string_view>, 7> kMeasures = {{
    {Measure::time_s, "time_s"},
    {Measure::algbw_gbps, "algbw_gbps"},
    {Measure::busbw_gbps, "busbw_gbps"},
    {Measure::bound_gbps, "bound_gbps"},
    {Measure::fraction, "fraction"},
    {Measure::link_share, "link_share"},
    {Measure::used_links, "used_links"},
}};

/// Reports leave out idle links.
double share_of_link(const Outcome& outcome, const std::string& name) {
  const auto& links = outcome.report.links;
  const auto link = std::ranges::find(links, name, &LinkUse::name);
  return link == links.end() ? 0 : link->bytes / static_cast<double>(outcome.report.message_bytes);
}

std::optional<double> measured(Measure measure, const Figure& figure, const Outcome* outcome,
                               std::string& missing) {
  if (outcome == nullptr) {
    missing = "the algorithm did not run";
    return std::nullopt;
  }
  const RunReport& report = outcome->report;
  switch (measure) {
    case Measure::time_s:
      return report.time_s;
    case Measure::algbw_gbps:
      return report.algbw_gbps();
    case Measure::busbw_gbps:
      return outcome->busbw_gbps();
    case Measure::fraction:
      return outcome->fraction;
    case Measure::link_share:
      return share_of_link(*outcome, figure.link);
    case Measure::used_links:
      return static_cast<double>(std::ranges::count(report.links, true, &LinkUse::is_link));
    case Measure::bound_gbps:
      if (outcome->bound && std::isfinite(outcome->bound->algbw_gbps)) {
        return outcome->bound->algbw_gbps;
      }
      missing = "there is no bound";
      return std::nullopt;
  }
  CHECK(false);
}

Verdict compare(const ExpectedResult& expectation, double ours) {
  const bool has_range = expectation.at_least || expectation.at_most;
  const bool in_range = (!expectation.at_least || ours >= *expectation.at_least) &&
                        (!expectation.at_most || ours <= *expectation.at_most);
  const bool is_paper =
      !expectation.paper ||
      std::abs(ours - *expectation.paper) <= expectation.tolerance * std::abs(*expectation.paper);
  if (is_paper && in_range) return Verdict::reproduced;
  return has_range && in_range ? Verdict::direction : Verdict::unexplained;
}

}  // namespace

std::string_view to_string(Measure measure) {
  return std::ranges::find(kMeasures, measure, &decltype(kMeasures)::value_type::first)->second;
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::reproduced:
      return "reproduced";
    case Verdict::direction:
      return "direction only";
    case Verdict::unexplained:
      return "not explained by the model";
  }
  CHECK(false);
}

const std::vector<Measure>& all_measures() {
  static const std::vector<Measure> all = [] {
    std::vector<Measure> measures;
    for (const auto& [measure, name] : kMeasures) measures.push_back(measure);
    return measures;
  }();
  return all;
}

Judgement judge(const ExpectedResult& expectation,
                const std::vector<std::vector<const Outcome*>>& answers) {
  Judgement judgement;
  const auto figure = [&](const Figure& one) {
    return measured(expectation.measure, one, answers[one.table][one.query], judgement.missing);
  };
  std::optional<double> ours = figure(expectation.of);
  if (ours && expectation.over) {
    const std::optional<double> over = figure(*expectation.over);
    if (over && *over == 0) judgement.missing = "the figure it is divided by is 0";
    ours = over && *over != 0 ? std::optional(*ours / *over) : std::nullopt;
  }
  judgement.ours = ours;
  if (ours) judgement.verdict = compare(expectation, *ours);
  return judgement;
}

}  // namespace espalier
