// SPDX-License-Identifier: Apache-2.0
#include "scenarios/expectation_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/units.h"
#include "core/words.h"
#include "scenarios/reading.h"

namespace espalier {

namespace {

/// "2%" or 0.02.
std::optional<double> read_share(const YamlValue& value) {
  const auto text = value.text("tolerance");
  if (!text) return std::nullopt;
  const bool per_cent = text->ends_with('%');
  const auto number = parse_number(text->substr(0, text->size() - (per_cent ? 1 : 0)));
  if (!number || *number < 0) {
    value.problem(fmt::format("{} is not a tolerance", quote(*text)), "such as 2%");
    return std::nullopt;
  }
  return per_cent ? *number / 100 : *number;
}

/// A figure, or an interval as a list of its ends.
std::optional<PaperFigure> read_paper(const YamlValue& value) {
  if (value.kind() != YamlValue::Kind::list) {
    const auto figure = value.number("paper");
    return figure ? std::optional(PaperFigure{*figure, *figure}) : std::nullopt;
  }
  const std::vector<YamlValue> ends = value.items("paper");
  if (ends.size() != 2) {
    value.problem("paper must be a figure, or an interval of two figures", "such as [0.65, 0.7]");
    return std::nullopt;
  }
  const auto minimum = ends[0].number("paper");
  const auto maximum = ends[1].number("paper");
  if (!minimum || !maximum) return std::nullopt;
  if (*minimum >= *maximum) {
    value.problem("the first figure of an interval must be below the second");
    return std::nullopt;
  }
  return PaperFigure{*minimum, *maximum};
}

/// The paper's figure and the range.
void read_range(YamlMap& map, ExpectedFigure& expected) {
  const YamlValue paper = map.get("paper");
  expected.paper = read_paper(paper);
  const YamlValue at_least = map.get("at_least");
  const YamlValue at_most = map.get("at_most");
  expected.at_least = at_least.number("at_least");
  expected.at_most = at_most.number("at_most");
  const YamlValue tolerance = map.get("tolerance");
  if (paper.present() && !tolerance.present()) {
    map.problem("paper needs a tolerance", "such as tolerance: 2%");
  } else if (!paper.present() && tolerance.present()) {
    tolerance.problem("a tolerance applies to paper, which is not given");
  }
  const double share = read_share(tolerance).value_or(0);
  if (expected.paper) expected.paper->tolerance = share;
  if (!paper.present() && !at_least.present() && !at_most.present()) {
    map.problem("this states no expectation", "give paper with tolerance, at_least or at_most");
  }
  if (expected.at_least && expected.at_most && *expected.at_least > *expected.at_most) {
    map.problem("at_least is more than at_most");
  }
}

/// Keys that make no sense beside others.
void refuse(YamlMap& map, std::initializer_list<const char*> keys, const std::string& why) {
  for (const char* key : keys) {
    if (map.get(key).present()) map.key_problem(key, fmt::format("{} {}", quote(key), why));
  }
}

std::optional<ExpectedFigure> read_figure(YamlMap& map, Measure measure, const FigureWords& words) {
  ExpectedFigure expected;
  const YamlValue of_value = map.need("of");
  const auto of = of_value.present() ? words.read(of_value, measure) : std::nullopt;
  const YamlValue over = map.get("over");
  if (over.present()) expected.over = words.read(over, measure);
  read_range(map, expected);
  refuse(map, {"factor"}, "applies to an order, which is not given");
  if (!of || (over.present() && !expected.over)) return std::nullopt;
  expected.of = *of;
  return expected;
}

std::optional<ExpectedOrder> read_order(YamlMap& map, Measure measure, const FigureWords& words) {
  ExpectedOrder expected;
  refuse(map, {"of", "over", "paper", "tolerance", "at_least", "at_most"},
         "applies to a single figure, but this is an order of figures");
  const YamlValue order = map.get("order");
  const std::vector<YamlValue> items = order.one_or_more();
  for (const YamlValue& item : items) {
    if (auto figure = words.read(item, measure)) expected.figures.push_back(std::move(*figure));
  }
  if (items.size() < 2) {
    order.problem("an order needs at least two figures", "list them in ascending order");
  }
  const YamlValue factor = map.get("factor");
  expected.factor = factor.number("factor");
  if (expected.factor && *expected.factor <= 1) {
    factor.problem("a factor must be greater than 1",
                   "leave it out if each figure only has to be greater than the one before");
  }
  return expected.figures.size() == items.size() ? std::optional(expected) : std::nullopt;
}

/// Reads the verdict expected, which is the best there can be unless it is given. Anything worse
/// must be told from that, and explained.
void read_verdict(YamlMap& map, ExpectedResult& expectation, bool has_direction) {
  // A figure that can't be read is a mistake by itself, and not one of the verdict.
  const bool has_paper = map.get("paper").present();
  const bool has_figure = has_paper || map.get("factor").present();
  const Verdict best = has_figure ? Verdict::reproduced : expectation.best_verdict();
  const YamlValue value = map.get("verdict");
  expectation.verdict = read_choice<Verdict>(value, "verdict", best,
                                             {{"reproduced", Verdict::reproduced},
                                              {"direction", Verdict::direction},
                                              {"unexplained", Verdict::unexplained}});
  if (expectation.verdict < best) {
    value.problem("without paper or factor, the best verdict of a claim is direction");
  }
  if (expectation.verdict == Verdict::direction && !has_paper && !expectation.is_of_paper()) {
    value.problem(
        "direction is a verdict for claims of papers only; any other expectation holds or does "
        "not");
  } else if (expectation.verdict == Verdict::direction && !has_direction) {
    map.problem(
        "direction means between at_least and at_most, but not within the tolerance of paper",
        "give paper, and at_least or at_most; or an order with a factor");
  }
  if (expectation.verdict > best && expectation.note.empty()) {
    map.problem("an expectation that is not reproduced needs a note that says why");
  }
}

std::optional<ExpectedResult> read_one(const YamlValue& value, const FigureWords& words) {
  YamlMap map(value, "an expectation");
  ExpectedResult expectation;
  expectation.where = value.where();
  expectation.title = map.need("title").text("title of an expectation").value_or("");
  expectation.claim = map.text("claim");
  expectation.note = map.text("note");
  Choices<Measure> measures;
  for (const Measure measure : words.measures) measures.emplace_back(to_string(measure), measure);
  expectation.measure = read_choice(map.get("measure"), "measure", words.usual_measure, measures);
  bool is_whole = false;
  bool has_direction = false;
  if (map.get("order").present()) {
    auto order = read_order(map, expectation.measure, words);
    is_whole = order.has_value();
    if (is_whole) expectation.result = std::move(*order);
    has_direction = map.get("factor").present() || !expectation.claim.empty();
  } else {
    auto figure = read_figure(map, expectation.measure, words);
    is_whole = figure.has_value();
    if (is_whole) expectation.result = std::move(*figure);
    has_direction = map.get("at_least").present() || map.get("at_most").present();
  }
  read_verdict(map, expectation, has_direction);
  map.finish();
  return is_whole ? std::optional(std::move(expectation)) : std::nullopt;
}

}  // namespace

std::vector<ExpectedResult> read_expectations(const YamlValue& value, const FigureWords& words) {
  std::vector<ExpectedResult> expectations;
  for (const YamlValue& item : value.one_or_more()) {
    if (auto expectation = read_one(item, words)) expectations.push_back(std::move(*expectation));
  }
  return expectations;
}

}  // namespace espalier
