// SPDX-License-Identifier: Apache-2.0
#include "cli/scenario_sweep.h"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "cli/records.h"
#include "core/check.h"

namespace espalier {

ScenarioSweep::ScenarioSweep(const std::vector<Scenario>& scenarios, int jobs,
                             const std::string& journal) {
  for (const Scenario& scenario : scenarios) {
    for (const ScenarioBlock& block : scenario.blocks) {
      std::visit([&](const auto& study) { add(study); }, block.study);
    }
  }
  if (!journal.empty()) journal_ = std::make_unique<Journal>(journal);
  std::vector<std::size_t> open;
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    Task& task = tasks_[number];
    if (journal_) task.key = std::visit([](const auto& all) { return key_of(all); }, task.queries);
    if (const Json* known = journal_ ? journal_->find(task.key) : nullptr) {
      receive(task, *known);
    } else {
      open.push_back(number);
    }
  }
  if (jobs == 0) jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const auto useful = static_cast<int>(std::clamp<std::size_t>(open.size(), 1, kMostJobs));
  workers_ = std::make_unique<WorkerPool>(
      std::min(jobs, useful), [this](std::size_t number) { return work(tasks_[number]); });
  workers_->begin(std::move(open), [this](std::size_t number, const std::string& answer) {
    Task& task = tasks_[number];
    const Json record = Json::parse(answer);
    if (journal_ && !is_error_record(record)) journal_->note(task.key, record);
    receive(task, record);
  });
}

void ScenarioSweep::add(const CollectiveStudy& study) {
  for (const std::vector<Query>& table : study.tables) {
    std::map<std::string, std::size_t> task_of;  // by algorithm
    for (const Query& query : table) {
      const auto [known, is_new] = task_of.try_emplace(query.algorithm, tasks_.size());
      if (is_new) tasks_.emplace_back().queries = std::vector<Query>{};
      auto& queries = std::get<std::vector<Query>>(tasks_[known->second].queries);
      places_.push_back({known->second, queries.size()});
      queries.push_back(query);
    }
  }
}

void ScenarioSweep::add(const TrainingStudy& study) {
  for (const TrainingSweep& table : study.tables) {
    for (TrainingQuery& query : table.queries()) {
      places_.push_back({tasks_.size(), 0});
      tasks_.emplace_back().queries = std::vector<TrainingQuery>{std::move(query)};
    }
  }
}

/// Done by a worker.
std::string ScenarioSweep::work(const Task& task) {
  try {
    if (const auto* queries = std::get_if<std::vector<Query>>(&task.queries)) {
      std::vector<Outcome> outcomes;
      for (const Query& query : *queries) {
        outcomes.push_back(study_.ask(query));
        outcomes.back().program.reset();  // it may be large, and the next one is too
      }
      return record_of(outcomes).dump();
    }
    std::vector<TrainingOutcome> outcomes;
    for (const TrainingQuery& query : std::get<std::vector<TrainingQuery>>(task.queries)) {
      outcomes.push_back(espalier::train(study_, simulator_, query));
    }
    return record_of(outcomes).dump();
  } catch (const Error& error) {
    return record_of(error).dump();
  }
}

void ScenarioSweep::receive(Task& task, const Json& record) {
  task.is_answered = true;
  try {
    std::visit([&](const auto& queries) { task.outcomes = outcomes_of(record, queries); },
               task.queries);
  } catch (const Error&) {
    task.error = std::current_exception();
  }
}

template <class Answer>
Answer ScenarioSweep::next() {
  CHECK(asked_ < places_.size());
  const Place place = places_[asked_++];
  Task& task = tasks_[place.task];
  while (!task.is_answered) workers_->wait(place.task);
  if (task.error) std::rethrow_exception(task.error);
  return std::move(std::get<std::vector<Answer>>(task.outcomes)[place.query]);
}

Outcome ScenarioSweep::ask(const Query& query) {
  auto outcome = next<Outcome>();
  CHECK(outcome.query.algorithm == query.algorithm && outcome.query.size_bytes == query.size_bytes);
  return outcome;
}

TrainingOutcome ScenarioSweep::train(const TrainingQuery& query) {
  auto outcome = next<TrainingOutcome>();
  CHECK(outcome.query.exchange.algorithm == query.exchange.algorithm);
  return outcome;
}

}  // namespace espalier
