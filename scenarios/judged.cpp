// SPDX-License-Identifier: Apache-2.0
#include "scenarios/judged.h"

#include <algorithm>

namespace espalier {

namespace {

bool is_answer(const Outcome& outcome, const Query& query) {
  return outcome.query.size_bytes == query.size_bytes && outcome.query.algorithm == query.algorithm;
}

bool is_answer(const TrainingOutcome& outcome, const TrainingQuery& query) {
  const Query& exchange = outcome.query.exchange;
  return exchange.gpus == query.exchange.gpus && exchange.algorithm == query.exchange.algorithm &&
         outcome.query.fusion_bytes == query.fusion_bytes;
}

/// The outcome of each query of one table; null where none ran.
template <class Question, class Answer>
std::vector<const Answer*> outcomes_of(const std::vector<Question>& queries,
                                       const std::vector<Answer>& outcomes) {
  std::vector<const Answer*> found;
  for (const Question& query : queries) {
    const auto outcome =
        std::ranges::find_if(outcomes, [&](const Answer& one) { return is_answer(one, query); });
    found.push_back(outcome == outcomes.end() ? nullptr : &*outcome);
  }
  return found;
}

template <class Answer>
std::vector<Judged> judge_all(const std::string& scenario,
                              const std::vector<ExpectedResult>& expectations,
                              const std::vector<std::vector<const Answer*>>& answers) {
  std::vector<Judged> judged;
  for (const ExpectedResult& expectation : expectations) {
    judged.push_back({scenario, expectation, judge(expectation, answers)});
  }
  return judged;
}

}  // namespace

std::vector<Judged> judge_block(const std::string& scenario, const ScenarioBlock& block,
                                const std::vector<Answers>& answers) {
  if (block.expectations.empty()) return {};
  const auto& tables = std::get<CollectiveStudy>(block.study).tables;
  std::vector<std::vector<const Outcome*>> outcomes;
  for (std::size_t table = 0; table < tables.size(); ++table) {
    outcomes.push_back(outcomes_of(tables[table], answers[table].outcomes));
  }
  return judge_all(scenario, block.expectations, outcomes);
}

std::vector<Judged> judge_block(const std::string& scenario, const ScenarioBlock& block,
                                const std::vector<TrainingAnswers>& answers) {
  if (block.expectations.empty()) return {};
  const auto& tables = std::get<TrainingStudy>(block.study).tables;
  std::vector<std::vector<const TrainingOutcome*>> outcomes;
  for (std::size_t table = 0; table < tables.size(); ++table) {
    outcomes.push_back(outcomes_of(tables[table].queries(), answers[table].outcomes));
  }
  return judge_all(scenario, block.expectations, outcomes);
}

}  // namespace espalier
