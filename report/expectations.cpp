// SPDX-License-Identifier: Apache-2.0
#include "report/expectations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/words.h"
#include "report/markdown.h"
#include "report/objects.h"

namespace espalier {

namespace {

/// Enough digits to tell neighbours apart, no more.
std::string figure(double value) {
  const bool is_long = std::abs(value) >= 1e4 && std::abs(value) < 1e15;
  return is_long ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

/// "0.65 to 0.7"
std::string paper_text(const PaperFigure& paper) {
  return paper.is_interval() ? fmt::format("{} to {}", figure(paper.minimum), figure(paper.maximum))
                             : figure(paper.minimum);
}

/// "1.5 within 2%, at least 1.2"
std::string wanted(const ExpectedFigure& expected) {
  std::vector<std::string> parts;
  if (expected.paper) {
    parts.push_back(fmt::format("{} within {:g}%", paper_text(*expected.paper),
                                100 * expected.paper->tolerance));
  }
  if (expected.at_least) parts.push_back("at least " + figure(*expected.at_least));
  if (expected.at_most) parts.push_back("at most " + figure(*expected.at_most));
  return join(parts, ", ");
}

std::string wanted(const ExpectedOrder& expected) {
  return expected.factor ? fmt::format("ascending, each at least {} times the one before",
                                       figure(*expected.factor))
                         : "rising";
}

std::string wanted(const ExpectedResult& expectation) {
  return std::visit([](const auto& result) { return wanted(result); }, expectation.result);
}

/// The paper's figure in a cell of a table.
std::string paper_text(const ExpectedResult& expectation) {
  const auto* expected = std::get_if<ExpectedFigure>(&expectation.result);
  return expected != nullptr && expected->paper ? paper_text(*expected->paper) : "-";
}

/// "1.43", "0.2, 0.4, 0.7" of an order, or why there is none.
std::string ours_text(const Judgement& judgement) {
  if (!judgement.ours) return judgement.missing;
  if (judgement.figures.empty()) return figure(*judgement.ours);
  std::vector<std::string> figures;
  for (const double one : judgement.figures) figures.push_back(figure(one));
  return join(figures, ", ");
}

/// A check that no paper speaks of holds, or does not.
std::string verdict_name(const ExpectedResult& expectation, Verdict verdict) {
  if (expectation.is_of_paper()) return std::string(to_string(verdict));
  return verdict == Verdict::reproduced ? "holds" : "does not hold";
}

std::string verdict_of(const Judged& one) {
  return one.judgement.ours ? verdict_name(one.expectation, one.judgement.verdict) : "no figure";
}

Json number(const std::optional<double>& value) { return value ? rounded(*value) : Json(); }

Json paper_json(const std::optional<PaperFigure>& paper) {
  if (!paper) return {};
  if (!paper->is_interval()) return rounded(paper->minimum);
  return Json::array({rounded(paper->minimum), rounded(paper->maximum)});
}

void add_result(const ExpectedFigure& expected, const Judgement& judgement, Json& json) {
  json["ratio"] = expected.over.has_value();
  json["ours"] = number(judgement.ours);
  json["paper"] = paper_json(expected.paper);
  json["tolerance"] = expected.paper ? rounded(expected.paper->tolerance) : Json();
  json["at_least"] = number(expected.at_least);
  json["at_most"] = number(expected.at_most);
}

void add_result(const ExpectedOrder& expected, const Judgement& judgement, Json& json) {
  json["order"] = Json::array();
  for (const double one : judgement.figures) json["order"].push_back(rounded(one));
  json["factor"] = number(expected.factor);
  json["ours"] = number(judgement.ours);
}

}  // namespace

JudgedText text_of(const Judged& judged) {
  return {wanted(judged.expectation), paper_text(judged.expectation), ours_text(judged.judgement),
          verdict_of(judged), verdict_name(judged.expectation, judged.expectation.verdict)};
}

Json judged_json(const Judged& judged) {
  const ExpectedResult& expectation = judged.expectation;
  Json json;
  json["kind"] = "expectation";
  json["scenario"] = judged.scenario;
  json["title"] = expectation.title;
  json["claim"] = expectation.claim.empty() ? Json() : Json(expectation.claim);
  json["measure"] = to_string(expectation.measure);
  std::visit([&](const auto& result) { add_result(result, judged.judgement, json); },
             expectation.result);
  json["verdict"] = judged.judgement.ours ? Json(verdict_of(judged)) : Json();
  json["as_expected"] = judged.as_expected();
  if (!judged.judgement.missing.empty()) json["missing"] = judged.judgement.missing;
  if (!expectation.note.empty()) json["note"] = expectation.note;
  return json;
}

std::string claims_markdown(const std::vector<Judged>& judged) {
  std::vector<const Judged*> claims;
  for (const Judged& one : judged) {
    if (!one.expectation.claim.empty()) claims.push_back(&one);
  }
  std::ranges::stable_sort(claims, {}, [](const Judged* one) { return one->expectation.claim; });
  std::string text =
      "| claim | what | the paper's figure | ours | expected | verdict | why | study |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const Judged* one : claims) {
    const ExpectedResult& expectation = one->expectation;
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | `{}` |\n",
                        markdown_cell(expectation.claim), markdown_cell(expectation.title),
                        paper_text(expectation), markdown_cell(ours_text(one->judgement)),
                        markdown_cell(wanted(expectation)), verdict_of(*one),
                        markdown_cell(expectation.note), markdown_cell(one->scenario));
  }
  return text;
}

}  // namespace espalier
