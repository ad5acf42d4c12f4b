// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/json.h"
#include "cli/sweep.h"
#include "cli/training_table.h"
#include "scenarios/scenario.h"

namespace espalier {

/// An expectation of a scenario and how it came out.
struct Judged {
  std::string scenario;
  ExpectedResult expectation;
  Judgement judgement;

  bool as_expected() const { return judgement.as_expected(expectation); }
};

/// Judges a block by what came out of each of its tables. \pre the block is of that kind.
std::vector<Judged> judge_block(const std::string& scenario, const ScenarioBlock& block,
                                const std::vector<Answers>& answers);
std::vector<Judged> judge_block(const std::string& scenario, const ScenarioBlock& block,
                                const std::vector<TrainingAnswers>& answers);

/// A line each, below the block's tables. What is not as expected is told apart.
void print_judged(const Console& console, const std::vector<Judged>& judged);

/// `espalier.expectation/1`.
Json judged_json(const Judged& judged);

/// The claims among them as a table in Markdown, in order of their names: claim, the paper's
/// figure, ours, verdict and why.
std::string claims_markdown(const std::vector<Judged>& judged);

}  // namespace espalier
