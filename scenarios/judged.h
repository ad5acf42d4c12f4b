// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "scenarios/answers.h"
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

}  // namespace espalier
