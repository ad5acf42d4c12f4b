// SPDX-License-Identifier: Apache-2.0
#include "scenarios/expectation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "core/check.h"
#include "scenarios/chunk_search.h"

namespace espalier {

namespace {

using NamedMeasure = std::pair<Measure, std::string_view>;

constexpr std::array<NamedMeasure, 16> kMeasures = {{
    {Measure::time_s, "time_s"},
    {Measure::algbw_gbps, "algbw_gbps"},
    {Measure::busbw_gbps, "busbw_gbps"},
    {Measure::bound_gbps, "bound_gbps"},
    {Measure::fraction, "fraction"},
    {Measure::link_share, "link_share"},
    {Measure::used_links, "used_links"},
    {Measure::benchmark_s, "benchmark_s"},
    {Measure::speedup, "speedup"},
    {Measure::iteration_s, "iteration_s"},
    {Measure::communication_s, "communication_s"},
    {Measure::exposed_s, "exposed_s"},
    {Measure::exposed_share, "exposed_share"},
    {Measure::hidden_s, "hidden_s"},
    {Measure::samples_per_s, "samples_per_s"},
    {Measure::efficiency, "efficiency"},
}};
constexpr std::size_t kCollectiveMeasures = 9;

std::vector<Measure> names_left(std::span<const NamedMeasure> named) {
  std::vector<Measure> measures;
  for (const auto& [measure, name] : named) measures.push_back(measure);
  return measures;
}

/// Reports leave out idle links.
double share_of_link(const Outcome& outcome, const std::string& name) {
  const auto& links = outcome.report.simulated->links;
  const auto link = std::ranges::find(links, name, &LinkUse::name);
  return link == links.end() ? 0 : link->bytes / static_cast<double>(outcome.report.message_bytes);
}

double used_links(const SimulatedPart& simulated) {
  double used = 0;
  for (const LinkUse& link : simulated.links) used += link.is_link ? link.alike : 0;
  return used;
}

std::optional<double> measured(Measure measure, const Figure& figure, const Outcome& outcome,
                               std::string& missing) {
  const RunReport& report = outcome.report;
  switch (measure) {
    case Measure::time_s:
      return report.time_s;
    case Measure::algbw_gbps:
      return report.algbw_gbps();
    case Measure::busbw_gbps:
      return outcome.busbw_gbps();
    case Measure::fraction:
      return outcome.fraction;
    case Measure::link_share:
      return share_of_link(outcome, figure.link);
    case Measure::used_links:
      return used_links(*report.simulated);
    case Measure::benchmark_s:
      return outcome.benchmark_s;
    case Measure::speedup:
      if (const auto speedup = speedup_of(outcome)) return speedup;
      missing = "NCCL's time is not known here";
      return std::nullopt;
    case Measure::bound_gbps:
      if (outcome.bound && std::isfinite(outcome.bound->algbw_gbps)) {
        return outcome.bound->algbw_gbps;
      }
      missing = "there is no bound";
      return std::nullopt;
    default:
      CHECK(false);
  }
}

std::optional<double> measured(Measure measure, const Figure& /*figure*/,
                               const TrainingOutcome& outcome, std::string& /*missing*/) {
  switch (measure) {
    case Measure::iteration_s:
      return outcome.iteration_s();
    case Measure::communication_s:
      return outcome.communication_s;
    case Measure::exposed_s:
      return outcome.exposed_s();
    case Measure::exposed_share:
      return outcome.exposed_s() / outcome.iteration_s();
    case Measure::hidden_s:
      return outcome.hidden_s();
    case Measure::samples_per_s:
      return outcome.samples_per_s();
    case Measure::efficiency:
      return outcome.efficiency();
    default:
      CHECK(false);
  }
}

Verdict compare(const ExpectedFigure& expected, double ours) {
  const bool has_range = expected.at_least || expected.at_most;
  const bool in_range = (!expected.at_least || ours >= *expected.at_least) &&
                        (!expected.at_most || ours <= *expected.at_most);
  const bool is_paper = !expected.paper || expected.paper->admits(ours);
  if (is_paper && in_range) return Verdict::reproduced;
  return has_range && in_range ? Verdict::direction : Verdict::unexplained;
}

/// \p step the least ratio of a figure to the one before.
Verdict compare(const ExpectedOrder& expected, double step) {
  if (!shorter(1, step)) return Verdict::unexplained;
  return shorter(step, expected.factor.value_or(1)) ? Verdict::direction : Verdict::reproduced;
}

/// `figure_of` answers a figure, or nothing after saying why.
template <class FigureOf>
void judge_result(const ExpectedFigure& expected, const FigureOf& figure_of, Judgement& judgement) {
  const std::optional<double> of = figure_of(expected.of);
  if (!of) return;
  judgement.ours = of;
  if (expected.over) {
    const std::optional<double> over = figure_of(*expected.over);
    if (over && *over == 0) judgement.missing = "the figure to divide by is 0";
    judgement.ours = over && *over != 0 ? std::optional(*of / *over) : std::nullopt;
  }
  if (judgement.ours) judgement.verdict = compare(expected, *judgement.ours);
}

template <class FigureOf>
void judge_result(const ExpectedOrder& expected, const FigureOf& figure_of, Judgement& judgement) {
  double step = std::numeric_limits<double>::infinity();
  for (const Figure& figure : expected.figures) {
    const std::optional<double> next = figure_of(figure);
    if (!next) return;
    if (!judgement.figures.empty()) {
      const double before = judgement.figures.back();
      // What follows nothing at all is more by any factor, unless it is nothing too.
      if (before > 0 || *next == 0) step = std::min(step, before > 0 ? *next / before : 1);
    }
    judgement.figures.push_back(*next);
  }
  judgement.ours = step;
  judgement.verdict = compare(expected, step);
}

template <class Answer>
Judgement judge_answers(const ExpectedResult& expectation,
                        const std::vector<std::vector<const Answer*>>& answers) {
  Judgement judgement;
  const auto figure_of = [&](const Figure& figure) -> std::optional<double> {
    const Answer* answer = answers[figure.table][figure.query];
    if (answer != nullptr) return measured(expectation.measure, figure, *answer, judgement.missing);
    judgement.missing = "the algorithm did not run";
    return std::nullopt;
  };
  std::visit([&](const auto& result) { judge_result(result, figure_of, judgement); },
             expectation.result);
  judgement.verdict = std::max(judgement.verdict, expectation.best_verdict());
  return judgement;
}

}  // namespace

std::string_view to_string(Measure measure) {
  return std::ranges::find(kMeasures, measure, &NamedMeasure::first)->second;
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

const std::vector<Measure>& collective_measures() {
  static const auto measures = names_left(std::span(kMeasures).first(kCollectiveMeasures));
  return measures;
}

const std::vector<Measure>& training_measures() {
  static const auto measures = names_left(std::span(kMeasures).subspan(kCollectiveMeasures));
  return measures;
}

bool PaperFigure::admits(double ours) const {
  return minimum - ours <= tolerance * std::abs(minimum) &&
         ours - maximum <= tolerance * std::abs(maximum);
}

bool ExpectedResult::is_of_paper() const {
  const auto* figure = std::get_if<ExpectedFigure>(&result);
  return !claim.empty() || (figure != nullptr && figure->paper);
}

Verdict ExpectedResult::best_verdict() const {
  const auto* figure = std::get_if<ExpectedFigure>(&result);
  const bool has_figure = figure != nullptr ? figure->paper.has_value()
                                            : std::get<ExpectedOrder>(result).factor.has_value();
  return has_figure || !is_of_paper() ? Verdict::reproduced : Verdict::direction;
}

Judgement judge(const ExpectedResult& expectation,
                const std::vector<std::vector<const Outcome*>>& answers) {
  return judge_answers(expectation, answers);
}

Judgement judge(const ExpectedResult& expectation,
                const std::vector<std::vector<const TrainingOutcome*>>& answers) {
  return judge_answers(expectation, answers);
}

}  // namespace espalier
