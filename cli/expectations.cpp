// SPDX-License-Identifier: Apache-2.0
#include "cli/expectations.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report.h"
#include "cli/text.h"
#include "core/words.h"

namespace espalier {

namespace {

const Outcome* find_outcome(const std::vector<Outcome>& outcomes, const Query& query) {
  const auto found = std::ranges::find_if(outcomes, [&](const Outcome& outcome) {
    return outcome.query.size_bytes == query.size_bytes &&
           outcome.query.algorithm == query.algorithm;
  });
  return found == outcomes.end() ? nullptr : &*found;
}

/// Enough digits to tell neighbours apart, no more.
std::string figure(double value) { return fmt::format("{:.4g}", value); }

/// "1.5 within 2%, at least 1.2"
std::string wanted(const ExpectedResult& expectation) {
  std::vector<std::string> parts;
  if (expectation.paper) {
    parts.push_back(
        fmt::format("{} within {:g}%", figure(*expectation.paper), 100 * expectation.tolerance));
  }
  if (expectation.at_least) parts.push_back("at least " + figure(*expectation.at_least));
  if (expectation.at_most) parts.push_back("at most " + figure(*expectation.at_most));
  return join(parts, ", ");
}

/// A check that no paper has a figure for holds, or does not.
std::string verdict_name(const ExpectedResult& expectation, Verdict verdict) {
  if (expectation.paper) return std::string(to_string(verdict));
  return verdict == Verdict::reproduced ? "holds" : "does not hold";
}

std::string verdict_of(const Judged& one) {
  return one.judgement.ours ? verdict_name(one.expectation, one.judgement.verdict) : "no figure";
}

Json number(const std::optional<double>& value) { return value ? rounded(*value) : Json(); }

/// Text in a cell of a Markdown table.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : trim(text)) {
    if (c == '|') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

}  // namespace

std::vector<Judged> judge_block(const std::string& scenario, const ScenarioBlock& block,
                                const std::vector<std::vector<Outcome>>& outcomes) {
  std::vector<std::vector<const Outcome*>> answers;
  for (std::size_t table = 0; table < block.tables.size(); ++table) {
    std::vector<const Outcome*>& row = answers.emplace_back();
    for (const Query& query : block.tables[table]) {
      row.push_back(find_outcome(outcomes[table], query));
    }
  }
  std::vector<Judged> judged;
  for (const ExpectedResult& expectation : block.expectations) {
    judged.push_back({scenario, expectation, judge(expectation, answers)});
  }
  return judged;
}

void print_judged(const Console& console, const std::vector<Judged>& judged) {
  for (const Judged& one : judged) {
    const ExpectedResult& expectation = one.expectation;
    const Judgement& judgement = one.judgement;
    const std::string claim = expectation.claim.empty() ? "" : expectation.claim + ", ";
    const std::string ours =
        judgement.ours ? fmt::format("{} ({})", figure(*judgement.ours), wanted(expectation))
                       : judgement.missing;
    const std::string verdict =
        one.as_expected() ? verdict_of(one)
                          : fmt::format("FAILED: {}, expected was: {} ({}:{})", verdict_of(one),
                                        verdict_name(expectation, expectation.verdict),
                                        expectation.where.file, expectation.where.line);
    const std::string line =
        fmt::format("{}{}: {}: {}", claim, trim(expectation.title), ours, verdict);
    const std::string text = wrap(line, console.width, "# ");
    console.out << (one.as_expected() ? text : styled(console, Style::bold, text));
    if (!expectation.note.empty())
      console.out << wrap(trim(expectation.note), console.width, "#   ");
  }
}

Json judged_json(const Judged& judged) {
  const ExpectedResult& expectation = judged.expectation;
  Json json;
  json["schema"] = "espalier.expectation/1";
  json["scenario"] = judged.scenario;
  json["title"] = expectation.title;
  json["claim"] = expectation.claim.empty() ? Json() : Json(expectation.claim);
  json["measure"] = to_string(expectation.measure);
  json["ratio"] = expectation.over.has_value();
  json["ours"] = number(judged.judgement.ours);
  json["paper"] = number(expectation.paper);
  json["tolerance"] = expectation.paper ? rounded(expectation.tolerance) : Json();
  json["at_least"] = number(expectation.at_least);
  json["at_most"] = number(expectation.at_most);
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
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | `{}` |\n", cell(expectation.claim),
        cell(expectation.title), expectation.paper ? figure(*expectation.paper) : "-",
        one->judgement.ours ? figure(*one->judgement.ours) : cell(one->judgement.missing),
        wanted(expectation), verdict_of(*one), cell(expectation.note), one->scenario);
  }
  return text;
}

}  // namespace espalier
